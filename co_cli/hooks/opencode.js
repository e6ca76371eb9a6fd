// Written by `co setup opencode`; `co setup opencode --undo` removes it. Whatever goes wrong here, the prompt goes on.
import { spawn } from "node:child_process"

const COMMAND = %(command)s
const SERVER = %(server)s
const SKILLS = %(skills)s
const MILLISECONDS = 5000

function ask(event) {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => { child.kill(); resolve("") }, MILLISECONDS)
    let printed = ""
    child.on("error", () => resolve(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => { printed += part })
    child.on("close", () => {
      clearTimeout(timer)
      try { resolve(JSON.parse(printed).hookSpecificOutput.additionalContext) } catch { resolve("") }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

// what was said in a session so far, as `opencode export` has it
async function conversation(client, session) {
  const { id, title, parentID } = (await client.session.get({ path: { id: session } })).data
  const found = (await client.session.messages({ path: { id: session } })).data
  const messages = found.map(({ info, parts }) => ({
    info: { role: info.role, time: info.time }, parts: parts.filter((part) => part.type === "text"),
  }))
  return { info: { id, title, parentID }, messages }
}

export const CoMemory = async ({ client, directory }) => {
  const started = new Set()
  const event = (name, session, fields) => ({ hook_event_name: name, session_id: session, cwd: directory, ...fields })
  return {
    config: async (config) => {
      config.mcp = { ...config.mcp, co: SERVER }
      config.skills = { ...config.skills, paths: [...(config.skills?.paths ?? []), SKILLS] }
    },
    "chat.message": async (input, output) => {
      try {
        const session = input.sessionID
        const spoken = output.parts.filter((part) => part.type === "text" && !part.synthetic)
        const prompt = spoken.map((part) => part.text).join("\n")
        const texts = []
        if (!started.has(session)) texts.push(await ask(event("SessionStart", session, { source: "startup" })))
        started.add(session)
        texts.push(await ask(event("UserPromptSubmit", session, { prompt })))
        const last = output.parts[output.parts.length - 1]
        texts.filter(Boolean).forEach((text, place) => output.parts.push({
          id: `${last.id}co${place}`, sessionID: session, messageID: output.message.id,
          type: "text", text, synthetic: true,
        }))
      } catch {}
    },
    event: async ({ event: seen }) => {
      const session = seen?.properties?.sessionID
      if (seen?.type === "session.compacted" && session) started.delete(session)
      if (seen?.type !== "session.idle" || !session) return
      try {
        await ask(event("Stop", session, { conversation: await conversation(client, session) }))
      } catch {}
    },
  }
}
