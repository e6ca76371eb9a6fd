"""What people say to an assistant all day that has nothing to do with the sample vault.

`TUNED_ON` and `CHATTER` were looked at when the limits of `searching/context.py` were chosen; `HELD_OUT` were written
with them and only counted.
"""

from __future__ import annotations

TUNED_ON = """
write a haiku about autumn
what is 17*23
tell me a joke about cats
translate "good morning" into French
what's the capital of Mongolia?
how do I boil an egg?
summarise the plot of Hamlet in three sentences
give me ideas for a birthday present for my ten year old niece
fix the grammar: me and him was going to the shop
explain recursion like I'm five
write a Python function that reverses a linked list
what's the difference between TCP and UDP?
hello!
thanks, that helps
how are you today?
can you make this email sound more polite: send me the file now
plan a week of vegetarian dinners
who won the world cup in 1998?
convert 5 miles to kilometres
what does the git rebase command do?
write a limerick about a programmer
suggest a good science fiction novel
how many days are there until Christmas?
draft a cover letter for a marketing job
why is the sky blue?
what should I wear for a job interview?
create a regular expression that matches email addresses
tell me about the French Revolution
how long should I cook a 2 kg chicken?
recommend some stretches for lower back pain
what is the meaning of life?
refactor this loop into a list comprehension
explain the difference between let and const in JavaScript
give me a workout plan for beginners
name three songs by the Beatles
what's a good way to learn Spanish?
continue
ok do it
write unit tests for the function above
help me name my new puppy
""".strip().splitlines()

HELD_OUT = """
compose a short poem about winter mornings
what is the square root of 1764?
roll two dice for me
how do you say thank you in Japanese?
what is the population of Brazil?
best way to clean a cast iron pan
give me a two line summary of Pride and Prejudice
which plants survive in a dark bathroom?
correct my spelling: I definately recieved teh package
explain quantum entanglement simply
write a SQL query that finds duplicate emails in a users table
how does HTTPS keep my data private?
good evening
sure, go ahead
what can you do?
rewrite this paragraph in a friendlier tone
make a packing list for a weekend of camping
who painted the Mona Lisa?
how many ounces are in a pound?
show me how to undo the last git commit
invent a superhero whose power is punctuality
recommend a board game for four people
what day of the week was 4 July 1976?
help me write a resignation letter
why do cats purr?
how do I tie a bow tie?
write a bash one-liner that counts lines in all .py files
tell me about the history of coffee
how long does it take to fly from London to Tokyo?
my neck hurts after working at a computer, any advice?
is there life on other planets?
convert this callback code to async/await
what is a closure in Python?
how can I fall asleep faster?
list five movies directed by Hitchcock
teach me the basics of chess
yes please
try again
add type hints to this file
what are some good names for a bakery?
""".strip().splitlines()

CHATTER = """
Good morning!
Hi there, hope you had a good weekend!
I have five minutes.
Thanks a lot.
I only have a few minutes before my next meeting.
Please answer in two sentences; be friendly.
No rush.
My boss asked me this on Friday.
It is raining here today.
I am on the train and the connection is bad.
Let me know if you need more.
This is for a presentation next week.
Keep it short.
""".strip().splitlines()
"""What stands around a question."""


def with_chatter(prompts: list[str]) -> list[str]:
    """Each prompt between two of the sentences that people put around one."""
    around = [(CHATTER[at % len(CHATTER)], CHATTER[(5 * at + 2) % len(CHATTER)]) for at in range(len(prompts))]
    return [f"{before} {prompt}. {after}" for prompt, (before, after) in zip(prompts, around, strict=True)]
