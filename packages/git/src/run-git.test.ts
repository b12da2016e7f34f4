import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning } from '@tutti/processes'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createGitRunner } from './run-git.ts'

const never = new AbortController().signal
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-run-git-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A git that starts a child of its own, which ignores SIGTERM, and waits. */
async function slowGit(): Promise<string> {
  const path = join(folder, 'git')
  const script = `#!/bin/sh\n(trap '' TERM; echo $$ > '${folder}/parent'; exec sleep 600) &\necho $! > '${folder}/child.new'; mv '${folder}/child.new' '${folder}/child'\nwait\n`
  await writeFile(path, script, { mode: 0o755 })
  return path
}

test.each(['abort', 'time limit'])('%s kills git and everything that it started', async (how) => {
  const git = createGitRunner({ gitPath: await slowGit(), home: folder })
  const controller = new AbortController()
  const run = git.run(['fetch'], { signal: controller.signal, timeoutMs: how === 'abort' ? 60_000 : 500 })
  const ended = run.catch((error: unknown) => error)
  const child = await vi.waitFor(async () => Number(await readFile(join(folder, 'child'), 'utf8')))
  if (how === 'abort') controller.abort()
  expect(await ended).toMatchObject({ code: how === 'abort' ? 'cancelled' : 'deadline_exceeded' })
  await vi.waitFor(() => expect(isRunning(child)).toBe(false))
})

test('says how to get git when there is none', async () => {
  const git = createGitRunner({ gitPath: join(folder, 'no-git'), home: folder })
  await expect(git.run(['version'], { signal: never })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('Install git') as string,
  })
})

test('stops at the output limit: an error, or cut when that is asked for', async () => {
  const git = createGitRunner({ gitPath: 'git', home: folder })
  const options = { signal: never, maxBytes: 10 }
  await expect(git.run(['help', '-a'], options)).rejects.toMatchObject({ code: 'resource_exhausted' })
  const output = await git.run(['help', '-a'], { ...options, cut: true })
  expect(output).toMatchObject({ cut: true })
  expect(output.stdout.length).toBeLessThanOrEqual(10)
})

test('streams more than any limit, and kills git when nobody reads on', async () => {
  const path = join(folder, 'git')
  const script = `#!/bin/sh\necho $$ > '${folder}/pid.new'; mv '${folder}/pid.new' '${folder}/pid'\nyes | head -c 100000000; [ "$LAST" = fail ] && echo no >&2 && exit 3\nexit 0\n`
  await writeFile(path, script, { mode: 0o755 })
  const git = createGitRunner({ gitPath: path, home: folder })
  const read = async (env: Record<string, string>) => {
    let bytes = 0
    for await (const chunk of git.stream(['pack-objects'], { signal: never, env })) bytes += chunk.length
    return bytes
  }
  expect(await read({})).toBe(100_000_000)
  const failure = await read({ LAST: 'fail' }).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'internal', cause: new Error('no') })
  const memory = process.memoryUsage().rss
  for await (const _ of git.stream(['pack-objects'], { signal: never })) {
    const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
    expect(isRunning(pid)).toBe(true)
    break
  }
  expect(isRunning(Number(await readFile(join(folder, 'pid'), 'utf8')))).toBe(false)
  expect(process.memoryUsage().rss - memory).toBeLessThan(100_000_000)
  const controller = new AbortController()
  const stream = git.stream(['pack-objects'], { signal: controller.signal })
  await stream.next()
  controller.abort()
  await expect(Array.fromAsync(stream)).rejects.toMatchObject({ code: 'cancelled' })
})
