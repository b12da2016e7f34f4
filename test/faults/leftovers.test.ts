import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Isolation } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { nothingLeft } from '../cases/nothing-left.ts'
import { startEnsemble } from './ensemble-driver.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('what a killed server leaves', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeEach(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '3', TUTTI_HEARTBEAT_TIMEOUT: '2s' },
    })
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  test('SEC-07 no process of a sandbox outlives it, and the next start clears mounts, groups, folders and temporary files', async () => {
    await stack.start()
    const fork =
      'command:sh -c \'trap "" TERM HUP INT; for n in 1 2 3 4 5; do setsid sleep 600 & done; echo up; wait\''
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: [fork, fork, fork],
      // With allowed hosts, each has an egress proxy with a socket among the temporary files.
      spec: { sandbox: { isolation: Isolation.BUBBLEWRAP, allowHosts: ['example.org'] } },
    })
    for (const bcId of await ensemble.bcIds())
      await ensemble.waitFor(bcId, (event) => event.type === 'shell_output_delta' && 'data' in event.event)
    const root = join(stack.dataDir, 'sandboxes')
    const states = readdirSync(root)
      .filter((name) => name.endsWith('.json'))
      .map((name) => JSON.parse(readFileSync(join(root, name), 'utf8')) as { id: string; groups: string[] })
    expect(states).toHaveLength(3)

    await stack.kill()
    await vi.waitFor(() => expect(stack.sandboxProcesses()).toEqual([]), { timeout: 2000, interval: 20 })
    expect(stack.sandboxFiles().length).toBeGreaterThan(0)
    // A start that was killed while it tried out mounts, and a state that was being written.
    mkdirSync(join(root, 'probe-1-1', 'data'), { recursive: true })
    if (process.getuid?.() === 0)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'probe', join(root, 'probe-1-1', 'data')])
    mkdirSync(join(root, 'f'.repeat(24), 'data'), { recursive: true })
    writeFileSync(join(root, `state-1-1-${'f'.repeat(24)}`), '{"version":1')

    await stack.start()
    // Those that were there are gone; what is there now belongs to the new incarnations.
    await vi.waitFor(
      () => {
        const names = readdirSync(root)
        for (const { id } of states) expect(names).not.toContain(id)
        expect(names.filter((name) => name.includes('-1-1') || name.startsWith('ffff'))).toEqual([])
        for (const { groups } of states)
          for (const group of groups) expect(() => readdirSync(group)).toThrow('ENOENT')
      },
      { timeout: 10_000 },
    )
    expect((await stack.run(['ensemble', 'stop', ensemble.ensembleId])).code).toBe(0)
    await ensemble.end()
    await nothingLeft(stack, 10_000)
  })
})
