import type { RecoveryEvent } from '@tutti/protocol'
import { afterEach, expect, test } from 'vitest'
import { takeNews } from './take-news.ts'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

let host: TestHost
afterEach(() => host?.remove())

test('what could not be read is not told as gone', () => {
  const missing = [
    { path: 'shut', reason: 'unreadable' },
    { path: 'big', reason: 'too_large' },
    { path: '.git', reason: 'unreadable' },
  ] as const
  const recovery = { reason: 'lost', missing } as unknown as RecoveryEvent
  expect(takeNews({ recovery, untold: new Set() })).toMatch(
    / Not there any more: "big", ".git"\. Could not be read, so as last read, if ever: "shut"\.\n\n$/,
  )
})

test('an agent is told once that its sandbox was lost, and what is not there any more', async () => {
  host = await createTestHost({ files: { kept: 'k' }, maxFileBytes: 1000 })
  const first = await host.provision(1)
  expect(first.server.news()).toBe('')
  await runInside(first, 'head -c 5000 /dev/zero > big; echo 1 > small')
  await captureNow(first)
  await host.lose(first)
  const second = await host.provision(2)
  const [recovery] = await host.events('recovery')
  const news = second.server.news()
  expect(news).toContain('Your sandbox was lost')
  expect(news).toContain(new Date(recovery!.capturedAt!).toISOString())
  expect(news).toContain('Not there any more: "big".')
  expect(second.server.news()).toBe('')
  // In good order, and with all that it had.
  await host.release(second)
  const third = await host.provision(3)
  expect(third.server.news()).toBe('')
  await host.lose(third)
  expect((await host.provision(4, { requestId: 'r' })).server.news()).toMatch(/^You have another sandbox\./)
})
