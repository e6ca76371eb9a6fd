-- Prompts that got no notes because it took too long to find them.

alter table turns add column late real;  -- after so many seconds nobody waited any longer; null: they came in time
