import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Isolation } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { nothingLeft } from '../cases/nothing-left.ts'
import { startEnsemble } from './ensemble-driver.ts'

const temporalPath = inject('temporalServer')

const longAgo = new Date('2020-01-01')

/** What a process that was killed leaves besides its sandboxes; their names, or their age, tell that it is dead. */
function leaveFiles(dataDir: string): string[] {
  const mirrors = join(dataDir, 'mirrors')
  const [inUse] = readdirSync(mirrors).filter((name) => /^[0-9a-f]{32}\.git$/.test(name))
  const unused = join(mirrors, `${'0'.repeat(32)}.git`)
  const folders = [
    join(mirrors, inUse!, 'checks', 'check-1-1-dead'),
    join(mirrors, `${'f'.repeat(32)}.git.new`),
    join(dataDir, '..', 'tmp', 'tutti-probe-1-1-dead'),
    unused,
  ]
  for (const path of folders) mkdirSync(path, { recursive: true })
  const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, '_')
  const files = [
    join(dataDir, 'blobs', 'tmp', `${host}.blob-1-1.half`),
    join(mirrors, inUse!, 'objects', 'pack', 'tmp_pack_dead'),
  ]
  for (const path of files) writeFileSync(path, '')
  for (const path of [unused, ...files]) utimesSync(path, longAgo, longAgo)
  return [...folders, ...files]
}

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

    const [mirror] = readdirSync(join(stack.dataDir, 'mirrors')).filter((name) =>
      /^[0-9a-f]{32}\.git$/.test(name),
    )
    const files = leaveFiles(stack.dataDir)

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
    await vi.waitFor(() => expect(files.filter(existsSync)).toEqual([]), { timeout: 10_000 })
    // Its owners went with the process, and its repository has agents.
    expect(existsSync(join(stack.dataDir, 'mirrors', mirror!))).toBe(true)
    expect((await stack.run(['ensemble', 'stop', ensemble.ensembleId])).code).toBe(0)
    await ensemble.end()
    await nothingLeft(stack, 10_000)
  })
})
