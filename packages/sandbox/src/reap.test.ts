import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bootId, processStart } from '@tutti/processes'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLocalSandboxes } from './local-sandboxes.ts'
import { listStates, sandboxFolder, sandboxId, writeState, type SandboxState } from './sandbox-state.ts'

const never = new AbortController().signal
let folder: string
let root: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-reap-'))
  root = join(folder, 'sandboxes')
  mkdirSync(root)
})
afterEach(() => rmSync(folder, { recursive: true }))

const worker = (stopGraceMs = 0) =>
  createLocalSandboxes({
    root,
    nodePath: process.execPath,
    stopGraceMs,
    disk: 'watchdog',
    limiter: 'watchdog',
  })

/** A sandbox as another process left it, or has it. */
async function leave(key: string, maker: SandboxState['maker']): Promise<string> {
  const id = sandboxId(root, key)
  const state = { version: 1, id, key, owner: 'o', isolation: 'none', bootId: bootId(), maker } as const
  await writeState(root, { ...state, groups: [], mounted: false })
  mkdirSync(sandboxFolder(root, id), { recursive: true })
  return id
}
const dead = { pid: 1, start: 'another' }
const living = { pid: process.ppid, start: processStart(process.ppid)! }

test('two workers of one host reap at once: each forgotten sandbox is ended, none that another process has', async () => {
  const forgotten = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => leave(key, dead)))
  const owned = await leave('owned', living)
  const withoutState = sandboxFolder(root, 'f'.repeat(24))
  mkdirSync(withoutState)
  const both = await Promise.all([worker().reap(never), worker().reap(never)])
  expect(
    both
      .flat()
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(forgotten.toSorted())
  expect((await listStates(root)).map(({ id }) => id)).toEqual([owned])
  expect(existsSync(sandboxFolder(root, owned))).toBe(true)
  for (const path of [...forgotten.map((id) => sandboxFolder(root, id)), withoutState])
    expect(existsSync(path)).toBe(false)
})

test('one that somebody makes anew while others are reaped is not theirs any more', async () => {
  const keys = ['a', 'b'].toSorted((one, other) => (sandboxId(root, one) < sandboxId(root, other) ? -1 : 1))
  const [first, second] = await Promise.all(keys.map((key) => leave(key, dead)))
  // The first takes its time to end, and tells when that has begun.
  const line = `trap 'echo asked' TERM; echo up; while :; do sleep 0.05; done`
  const child = spawn('/bin/sh', ['-c', line], {
    env: { ...process.env, TUTTI_SANDBOX_ID: first! },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const words = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]()
  expect((await words.next()).value).toBe('up\n')
  const reaping = worker(1000).reap(never)
  expect((await words.next()).value).toBe('asked\n')
  await leave(keys[1]!, living)
  expect((await reaping).map(({ id }) => id)).toEqual([first])
  expect((await listStates(root)).map(({ id }) => id)).toEqual([second])
  expect(existsSync(sandboxFolder(root, second!))).toBe(true)
})
