import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { setTimeout as sleep } from 'node:timers/promises'

const temporalPath = inject('temporalServer')
const main = join(import.meta.dirname, '../../packages/cli/src/main.ts')

describe.skipIf(!temporalPath)('the demo', { timeout: 120_000 }, () => {
  const folders: string[] = []
  afterEach(async () => {
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
    const child = spawn(process.execPath, [main, 'demo', '--data-dir', join(folder, 'data')], { env })
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (data: Buffer) => (output.stdout += data.toString()))
    child.stderr.on('data', (data: Buffer) => (output.stderr += data.toString()))
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
    return { folder, child, output, ended }
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
    const { folder, child, output, ended } = await start()
    while (!output.stderr.includes(words)) await sleep(20)
    child.kill('SIGINT')
    expect([2, 130]).toContain(await ended)
    expect(output.stdout).not.toContain('Somebody stopped it.')
    expect(processesNaming(folder)).toEqual([])
  })

  test('a second Ctrl-C says that it kills', async () => {
    const { folder, child, output, ended } = await start()
    while (!output.stderr.includes('working')) await sleep(20)
    child.kill('SIGINT')
    while (!output.stderr.includes('Press Ctrl-C again')) await sleep(5)
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(output.stderr).toContain('Killing it now.')
    while (processesNaming(folder).length > 0) await sleep(20)
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
