import { describeLocalSandbox } from '@tutti/sandbox'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestBench, never, shell, testPolicy, type TestBench } from './test-sandbox.ts'

let bench: TestBench
beforeAll(async () => {
  bench = await createTestBench()
})
afterAll(async () => {
  await bench.dispose()
})

test('SEC-07: bombs and busy loops stay in their sandbox, can be cancelled, and the neighbour works on', async () => {
  // A real bomb is only let off where the kernel holds it.
  expect((await describeLocalSandbox({ root: join(bench.folder, 'probe') })).limiter).not.toBe('watchdog')
  const limits = { ...testPolicy.limits, pids: 60, memoryBytes: 256 << 20, cpuPercent: 50 }
  const [victim, neighbour] = await Promise.all([bench.start({ policy: { limits } }), bench.start()])

  const abort = new AbortController()
  const bomb = shell(victim.server, 'f() { f | f & sleep 60; }; f; wait', abort.signal)
  bomb.catch(() => {})
  await expect.poll(() => victim.sandbox.limitHit(), { timeout: 10_000 }).toBe('pids')
  expect((await shell(neighbour.server, 'echo fine')).stdout).toBe('fine\n')
  const start = performance.now()
  abort.abort()
  await expect(bomb).rejects.toMatchObject({ code: 'cancelled' })
  await victim.server.killProcesses(never)
  expect(performance.now() - start).toBeLessThan(10_000)
  expect((await shell(victim.server, 'echo back')).stdout).toBe('back\n')

  const memory = await shell(
    victim.server,
    `/opt/node/bin/node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(4 << 20, 1))'; echo "ended $?"`,
  ).catch((error: unknown) => error)
  // The kernel takes the bomb, or in a bad moment the server: then the call says why.
  expect(JSON.stringify(memory)).toMatch(/ended 137|resource_limit/)

  const loops = bench.start({ policy: { limits } })
  const busy = new AbortController()
  const running = shell((await loops).server, 'while :; do :; done & while :; do :; done', busy.signal)
  running.catch(() => {})
  expect((await shell(neighbour.server, 'echo fine')).stdout).toBe('fine\n')
  busy.abort()
  await expect(running).rejects.toMatchObject({ code: 'cancelled' })

  for (const { sandbox } of [victim, neighbour, await loops]) {
    const destroyStart = performance.now()
    await bench.provider.destroy(sandbox.ref, never)
    expect(performance.now() - destroyStart).toBeLessThan(5000)
  }
  expect(await bench.provider.list(undefined, never)).toEqual([])
})
