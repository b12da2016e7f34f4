import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput } from './agent-driver.ts'
import { runStack, type RunningStack } from './run-stack.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('SBX-03 the disk of an idle sandbox is empty', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let start: RunningStack['start']
  const folder = mkdtempSync(join(tmpdir(), 'tutti-mirror-'))

  beforeAll(async () => {
    const running = await runStack()
    ;({ stack, start } = running)
    return running.remove
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const files = () => readdirSync(folder).filter((name) => name !== '.tutti')
  /** Empties the folders that an idle sandbox writes to, below the feet of its agent server. */
  function emptyDisk(): void {
    const sandboxes = join(stack.dataDir, 'sandboxes')
    const disks = readdirSync(sandboxes, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(disks).toHaveLength(1)
    for (const name of ['workspace', 'home']) {
      const disk = join(sandboxes, disks[0]!.name, 'data', name)
      expect(readdirSync(disk).length).toBeGreaterThan(0)
      for (const entry of readdirSync(disk)) rmSync(join(disk, entry), { recursive: true })
    }
  }

  test('SBX-03 no deletion is logged, a mirror keeps its files, and it is recovered before anything runs', async () => {
    const agent = await start('run: for i in $(seq 2000); do echo $i > n$i; done')
    expect((await agent.rest()).state?.reason).toBe('completed')
    const before = await agent.events()
    const mirror = stack.cli(['sync', agent.bcId, folder])
    await expect.poll(() => files().length, { timeout: 30_000 }).toBe(2001)

    emptyDisk()
    await agent.followUp(script('run: ls | wc -l; cat n1 n2000; git status --porcelain | wc -l'))
    expect((await agent.rest()).state?.reason).toBe('completed')
    const since = (await agent.events()).slice(before.length)
    expect(since.filter(({ type }) => type === 'file_change')).toEqual([])
    expect(shellOutput(since)).toBe('2001\n1\n2000\n2000\n')
    const { manifestDigest } = before.findLast((event) => event.type === 'workspace_captured')!
    expect(since.filter((event) => event.type === 'recovery')).toMatchObject([
      { reason: 'lost', incarnation: 2, manifestDigest, proven: true, missing: [] },
    ])
    const [lost, ready, call] = [
      since.findIndex((event) => event.type === 'sandbox' && event.state === 'lost'),
      since.findIndex((event) => event.type === 'sandbox' && event.state === 'ready'),
      since.findIndex((event) => event.type === 'tool_call_started'),
    ]
    expect(lost).toBeGreaterThanOrEqual(0)
    expect(lost < ready && ready < call).toBe(true)

    // The mirror has seen all of it by then.
    await agent.followUp(script('write: seen 1'))
    await expect.poll(() => files().includes('seen'), { timeout: 30_000 }).toBe(true)
    expect(files()).toHaveLength(2002)
    mirror.process.kill('SIGTERM')
    await mirror.done
  })
})
