import { execFileSync } from 'node:child_process'
import type { TuttiClient } from '@tutti/client'
import type { TestRepository, TuttiStack } from '@tutti/testkit'
import { expect } from 'vitest'
import { shellOutput, startAgent, type AgentDriver, type Logged } from './agent-driver.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'
import { script } from './script.ts'

/** The paths of a workspace as its own file system shows them: mode and hash, the target of a link, or an empty folder. Keys are path bytes as latin1. */
export type Listing = Readonly<Record<string, string>>

/** Run inside, where the agent's own git and file system answer. No apostrophe may be in it. */
const listing = `
const fs = require("fs"), { createHash } = require("crypto"), found = {}
const join = (folder, name) => Buffer.concat([folder, Buffer.from("/"), name])
;(function walk(folder, key) {
  const names = fs.readdirSync(folder, { encoding: "buffer" })
  if (names.length === 0) found[key] = "empty"
  for (const name of names) {
    if (name.toString() === ".git") continue
    const path = join(folder, name), at = key + name.toString("latin1"), stat = fs.lstatSync(path)
    if (stat.isDirectory()) walk(path, at + "/")
    else if (stat.isSymbolicLink()) found[at] = "link " + fs.readlinkSync(path, { encoding: "buffer" }).toString("latin1")
    else found[at] = (stat.mode & 0o777).toString(8) + " " + createHash("sha256").update(fs.readFileSync(path)).digest("hex")
  }
})(Buffer.from("."), "")
console.log("LISTING " + Buffer.from(JSON.stringify(found)).toString("base64"))`

/** A command that prints what {@link listingIn} reads. */
export const list = `node -e '${listing}'`

export interface LostSandbox {
  readonly agent: AgentDriver
  readonly before: Listing
  readonly after: Listing
  /** What the agent's work printed. */
  readonly said: string
  /** What the commands after the loss printed. */
  readonly output: string
  /** Events of the new sandbox. */
  readonly since: readonly Logged[]
}

/**
 * An agent does its work in one turn, comes to rest, and loses its sandbox with its disk; the next turn is in another one, with
 * what the log and the stores have.
 */
export async function loseSandbox(
  stack: TuttiStack,
  client: TuttiClient,
  repository: TestRepository,
  work: string,
  afterwards = 'true',
): Promise<LostSandbox> {
  const agent = await startAgent(client, {
    prompt: commands(work, list),
    repository: repository.path,
    agent: 'embedded:scripted',
  })
  expect((await agent.rest()).state?.reason).toBe('completed')
  const first = await agent.events()
  const since = await inNextSandbox(stack, agent, list, 'echo OUTPUT', afterwards)
  expect(since.find((event) => event.type === 'sandbox' && event.state === 'ready')).toMatchObject({
    incarnation: 2,
  })
  const [, output = ''] = shellOutput(since).split('OUTPUT\n')
  const [said = ''] = shellOutput(first).split('LISTING ')
  return { agent, before: listingIn(first), after: listingIn(since), said, output, since }
}

/** What is in the workspace of an agent at rest. */
export async function listNow(agent: AgentDriver): Promise<Listing> {
  const before = (await agent.events()).length
  await agent.followUp(commands(list))
  await agent.rest()
  return listingIn((await agent.events()).slice(before))
}

/** The same of a folder of ours. */
export function listFolder(folder: string): Listing {
  const output = execFileSync(process.execPath, ['-e', listing], { cwd: folder, encoding: 'utf8' })
  return listingOf(output)
}

/** Takes the sandbox of an agent at rest away, and lists what is in its next one. */
export const listAfterLoss = async (stack: TuttiStack, agent: AgentDriver): Promise<Listing> =>
  listingIn(await inNextSandbox(stack, agent, list))

/** Takes the sandbox of an agent at rest away; what its next turn then did, with these commands. */
async function inNextSandbox(
  stack: TuttiStack,
  agent: AgentDriver,
  ...lines: readonly string[]
): Promise<readonly Logged[]> {
  const before = (await agent.events()).length
  killAll(sandboxesOf(stack).flat())
  await agent.followUp(commands(...lines))
  expect((await agent.rest()).state?.reason).toBe('completed')
  return (await agent.events()).slice(before)
}

/** A prompt whose turn runs these, one after the other. */
export const commands = (...lines: readonly string[]) => script('run: <<EOF', 'set -e', ...lines, 'EOF')

/** What the last {@link list} among these events has printed. */
export const listingIn = (events: readonly Logged[]): Listing => listingOf(shellOutput(events))

function listingOf(output: string): Listing {
  const [, text = ''] = /^LISTING (.*)$/m.exec(output) ?? []
  return JSON.parse(Buffer.from(text, 'base64').toString()) as Listing
}
