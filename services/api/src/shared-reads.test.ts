import type { EventLog, ReadResult } from '@tutti/store'
import { expect, test, vi } from 'vitest'

import { createSharedReads } from './shared-reads.ts'

const log = 'bc-01890a5d-ac96-774b-bcce-b302099a8057'
const empty: ReadResult = { records: [], next: 1, head: { last: 1, closed: false, archived: 0 } }
const signal = new AbortController().signal

/** Only what is shared is of interest here; streams over the real store are tested as cases. */
function harness() {
  const pending = Promise.withResolvers<ReadResult>()
  const signals: AbortSignal[] = []
  const read = vi.fn<EventLog['read']>((_log, _from, _options, given) => {
    signals.push(given)
    return pending.promise
  })
  return { reads: createSharedReads({ read } as unknown as EventLog), read, pending, signals }
}

test('readers at one position share one read, and one that leaves does not disturb the rest', async () => {
  const { reads, read, pending, signals } = harness()
  const leaver = new AbortController()
  const left = reads.next(log, 1, 60_000, leaver.signal)
  const others = [1, 2, 3].map(() => reads.next(log, 1, 60_000, signal))
  leaver.abort()
  await expect(left).rejects.toMatchObject({ code: 'cancelled' })
  expect(read).toHaveBeenCalledTimes(1)
  expect(signals[0]?.aborted).toBe(false)
  pending.resolve(empty)
  expect(await Promise.all(others)).toEqual([empty, empty, empty])
})

test('the last reader that leaves ends the read', async () => {
  const { reads, signals } = harness()
  expect(await reads.next(log, 1, 5, signal)).toBeUndefined()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

test('a failure reaches all who wait, and the next one asks again', async () => {
  const { reads, read, pending } = harness()
  const waiting = [1, 2].map(() => reads.next(log, 1, 60_000, signal))
  pending.reject(new Error('disk'))
  for (const result of await Promise.allSettled(waiting)) expect(result).toMatchObject({ status: 'rejected' })
  await reads.next(log, 1, 60_000, signal).catch(() => undefined)
  expect(read).toHaveBeenCalledTimes(2)
})
