import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readdirSync, readFileSync } from 'node:fs'
import { cliMain } from '@tutti/testkit'
import { afterEach, describe, expect, inject, test, vi } from 'vitest'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('the demo', { timeout: 120_000 }, () => {
  const folders: string[] = []
  const children: ChildProcess[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGTERM')
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
  })

  const start = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tutti-demo-'))
    folders.push(folder)
    const env = {
      ...process.env,
      TEMPORAL_CLI_PATH: temporalPath!,
      TEMPORAL_ADDRESS: '',
      XDG_CONFIG_HOME: folder,
      TUTTI_PORT: '0',
      NO_COLOR: '1',
    }
    const child = spawn(process.execPath, [cliMain, 'demo', '--data-dir', join(folder, 'data')], { env })
    children.push(child)
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (data: Buffer) => (output.stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (output.stderr += data.toString()))
    const ended = new Promise<number | string | null>((resolve) =>
      child.on('close', (code, signal) => resolve(code ?? signal)),
    )
    const says = (words: string) =>
      vi.waitFor(() => expect(output.stderr).toContain(words), { timeout: 60_000, interval: 10 })
    return { folder, child, output, ended, says }
  }

  test('repairs its repository: part and all are combined, what breaks is left out, one pull request opens', async () => {
    const { output, ended } = await start()
    expect(await ended, output.stderr).toBe(0)
    expect(output.stdout).toContain('COMPLETED')
    expect(output.stdout).toContain('merge of 2')
    expect(output.stdout).toContain('pull request #1')
    expect(output.stdout).toMatch(/left out\s+Simplified the item count/)
    expect(output.stdout).toContain('parse-price-thousands.test.js')
    const [, server = ''] = output.stdout.split('\nNext\n')
    expect(server).toMatch(/^ +(npx )?tutti dev --data-dir /)
    expect(server).toMatch(/tutti pr show 1 --data-dir /)
    for (const phase of ['STARTING', 'CHILDREN_RUNNING', 'GATHERING', 'SYNTHESIZING']) {
      expect(output.stdout).toContain(phase)
    }
  })

  test.each([
    ['while it starts', 'Made a repository'],
    ['while agents work', 'working'],
  ])('Ctrl-C %s leaves nothing running', async (_when, words) => {
    const { folder, child, output, ended, says } = await start()
    await says(words)
    child.kill('SIGINT')
    // Before anything runs, Node ends by the signal itself.
    expect([2, 130, 'SIGINT']).toContain(await ended)
    expect(output.stdout).not.toContain('Somebody stopped it.')
    expect(processesNaming(folder)).toEqual([])
  })

  test('a second Ctrl-C says that it kills', async () => {
    const { folder, child, output, ended, says } = await start()
    await says('working')
    child.kill('SIGINT')
    await says('Stopping the ensemble')
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(output.stderr).toContain('Killing it now.')
    await vi.waitFor(() => expect(processesNaming(folder)).toEqual([]), { timeout: 10_000 })
  })
})

/** Command lines of living processes that name the folder. */
function processesNaming(folder: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return words.includes(folder) ? [words] : []
    } catch {
      return []
    }
  })
}
