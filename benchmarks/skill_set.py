"""A thousand skills to choose from: 144 as people write them, and generated ones that crowd around them.

`skills.jsonl` and `skill_tasks.jsonl` were written before anything was tuned on them. A task is what a user would say;
nine in ten share no word with the name of the skill that is meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SKILLS = 1_000
HERE = Path(__file__).parent

SYSTEMS = (
    "Salesforce HubSpot Zendesk Jira Notion Airtable Asana Trello Slack Teams Zoom Dropbox Box SharePoint Confluence "
    "Shopify WooCommerce Magento QuickBooks Xero SAP NetSuite Workday BambooHR Greenhouse Intercom Freshdesk "
    "ServiceNow PagerDuty Datadog Sentry Snowflake BigQuery Redshift Tableau Looker Mailchimp SendGrid Twilio Segment "
    "Mixpanel Amplitude Typeform DocuSign"
).split()
JOBS = (
    ("export", "Export {system} records to CSV or Parquet, page by page, with the rate limits of its API"),
    ("import", "Import records into {system} from files, map columns to fields and report rejected rows"),
    ("backup", "Back up everything in {system} every night and restore single objects"),
    ("migration", "Move an account from {system} to another product, or from another product to {system}"),
    ("permissions", "Review who may see and change what in {system} and clean up roles"),
    ("dashboards", "Build dashboards and scheduled reports in {system}"),
    ("webhooks", "Receive events from {system} and react to them"),
    ("automation", "Set up rules in {system} that act on their own when something changes"),
    ("search", "Find things in {system} with its query language"),
    ("templates", "Create and maintain templates in {system}"),
    ("notifications", "Tame the notifications of {system}: who hears of what, and where"),
    ("custom-fields", "Add and document custom fields in {system}"),
    ("bulk-edit", "Change many {system} records at once, with a dry run first"),
    ("archiving", "Archive and delete old {system} data according to a retention schedule"),
    ("sso", "Connect {system} to single sign-on and provision its users"),
    ("api-client", "Write a small client for the {system} API with paging, retries and types"),
    ("troubleshooting", "Find out why an integration with {system} stopped working"),
    ("training", "Explain {system} to new users with a guided tour"),
    ("billing", "Check the licences and the bill of {system}, and find seats that nobody uses"),
    ("sync", "Keep {system} and a database in step in both directions"),
)


class WrittenSkill(NamedTuple):
    """What stands in a SKILL.md."""

    name: str
    description: str
    body: str

    @property
    def text(self) -> str:
        description = json.dumps(self.description, ensure_ascii=False)  # TOML's, YAML's and JSON's strings are alike
        title = self.name.replace("-", " ").capitalize()
        return f"---\nname: {self.name}\ndescription: {description}\n---\n# {title}\n\n{self.body}\n"


class Task(NamedTuple):
    """What a user says, and the skill that is meant."""

    task: str
    skill: str


def written_skills() -> list[WrittenSkill]:
    lines = (HERE / "skills.jsonl").read_text("utf-8").splitlines()
    return [WrittenSkill(**json.loads(line)) for line in lines]


def tasks() -> list[Task]:
    lines = (HERE / "skill_tasks.jsonl").read_text("utf-8").splitlines()
    return [Task(**json.loads(line)) for line in lines]


def generated_skills() -> Iterator[WrittenSkill]:
    """Every job in every system: 880 of them."""
    for job, what in JOBS:
        for system in SYSTEMS:
            described = what.format(system=system)
            description = f"{described}. Use when the user works with {system} and mentions {job.replace('-', ' ')}."
            body = f"Ask for the {system} account and what is wanted. {described}. Say what was done and what was not."
            yield WrittenSkill(f"{system.lower()}-{job}", description, body)


def put_skills(folder: Path, count: int = SKILLS) -> list[WrittenSkill]:
    """Write so many skills: those that people wrote first."""
    skills = [skill for skill, _ in zip([*written_skills(), *generated_skills()], range(count), strict=False)]
    for skill in skills:
        place = folder / skill.name
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(skill.text, "utf-8")
    return skills
