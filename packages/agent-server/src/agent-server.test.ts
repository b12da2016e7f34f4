import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestBench, never, recordCapture, shell, type TestBench } from './test-sandbox.ts'

describe.each(['bubblewrap', 'none'] as const)('agent server, isolation %s', (isolation) => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench()
  })
  afterAll(async () => {
    await bench.dispose()
  })

  test('hydrates, runs a program and captures what it changed', async () => {
    const { server, sandbox } = await bench.start({ policy: { isolation } })
    const base = await server.hydrate(
      { commit: bench.commit, branch: 'work', changes: [], contentOf: () => [] as never },
      never,
    )
    expect(base.entries).toBe(1)

    const run = await shell(
      server,
      'cat README.md; echo new > new.txt; rm README.md; git status --short; echo e >&2',
    )
    expect(run).toMatchObject({ code: 0, stderr: 'e\n', stdout: 'hello\n D README.md\n?? new.txt\n' })

    const recorded = recordCapture()
    const summary = await server.capture(recorded.sink, never)
    expect(recorded.changes.map((change) => change.action)).toEqual(['deleted', 'created'])
    expect([...recorded.contents.values()].map(String)).toEqual(['new\n'])
    expect(summary).toMatchObject({ entries: 1, changes: 2 })
    expect(await server.capture(recordCapture().sink, never)).toEqual({ ...summary, changes: 0 })
    await server.close()
    await bench.provider.destroy(sandbox.ref, never)
    expect(await bench.provider.list(undefined, never)).toEqual([])
  })
})
