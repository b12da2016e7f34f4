import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning } from '@tutti/processes'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkTools } from './check-tools.mjs'
import { trySandbox } from './ensure-sandbox.mjs'
import { runStep } from './run-step.mjs'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti set-up '))
})

afterEach(() => rm(folder, { recursive: true, force: true }))

describe('checkTools', () => {
  test('takes this machine', () => {
    expect(() => checkTools()).not.toThrow()
  })

  test('names everything that is missing or too old, and how to get it', async () => {
    await program('git', 'echo git version 2.34.1')
    expect(() => checkTools({ PATH: folder })).toThrow(
      /git is 2\.34\.1; Tutti needs git 2\.38 or newer[\s\S]*apt-get install git[\s\S]*npm is missing/,
    )
  })
})

describe('trySandbox', () => {
  test('tells a missing bubblewrap', () => {
    expect(trySandbox({ PATH: folder })).toEqual({
      ok: false,
      missing: true,
      why: 'bubblewrap is not installed',
    })
  })

  test('tells one that the system refuses, with its words', async () => {
    await program('bwrap', 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1')
    expect(trySandbox({ PATH: folder })).toEqual({
      ok: false,
      missing: false,
      why: 'bwrap: setting up uid map: Permission denied',
    })
  })
})

describe('runStep', () => {
  test('keeps what a step prints', async () => {
    const { signal } = new AbortController()
    expect(await runStep('A step', 'sh', ['-c', 'echo out; echo err >&2; exit 2'], { signal })).toEqual({
      ok: false,
      output: expect.stringMatching(/out\n[\s\S]*err\n|err\n[\s\S]*out\n/),
    })
    expect((await runStep('A step', 'no-such-program', [], { signal })).output).toContain('ENOENT')
  })

  test('an abort ends the step and what it started', async () => {
    const stop = new AbortController()
    const step = runStep('A step', 'sh', ['-c', `sleep 600 & echo $! > '${folder}/pid'; wait`], {
      signal: stop.signal,
    })
    const pid = await expect
      .poll(() => readFile(join(folder, 'pid'), 'utf8').catch(() => ''))
      .toMatch(/^\d+\n$/)
      .then(() => readFile(join(folder, 'pid'), 'utf8'))
    stop.abort(new Error('interrupted'))
    await expect(step).rejects.toThrow('interrupted')
    await expect.poll(() => isRunning(Number(pid))).toBe(false)
  })
})

async function program(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, name), 0o755)
}
