import { TuttiError } from '@tutti/core'
import { decodeRunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'
import { afterEach, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal

let host: TestHost | undefined
afterEach(async () => host?.remove())

test('REC-15 the same batch delivered twice', { timeout: 60_000 }, async () => {
  const lost = Promise.withResolvers<Parameters<EventLog['append']>>()
  const again = Promise.withResolvers<void>()
  const answers: unknown[] = []
  /** Keeps its answer to the batch of five to itself, once. */
  const forgetful = (real: EventLog): EventLog => ({
    ...real,
    async append(...args) {
      const records = args[2]
      if (records.filter(({ type }) => type === 'file_change').length !== 5) return real.append(...args)
      if (answers.length > 0) await again.promise
      const answer = await real.append(...args)
      answers.push(answer)
      if (answers.length > 1) return answer
      lost.resolve(args)
      throw new TuttiError('unavailable', 'The answer was lost.')
    },
  })
  host = await createTestHost({ files: { x: 'x' }, eventLog: forgetful })
  const { bcId, store, events, provision, lose } = host
  const first = await provision(1)

  await runInside(first, 'for n in 1 2 3 4 5; do echo first $n > f$n; done')
  await first.workspace.capture(never)
  const batch = await lost.promise
  await runInside(first, 'echo later > f3')
  await first.workspace.capture(never)
  again.resolve()
  await first.log.flush()
  expect(answers).toMatchObject([{ repeated: false }, { repeated: true }])
  // One more time, after the later change.
  const { last } = await store.eventLog.head(bcId, never)
  expect(await store.eventLog.append(...batch)).toEqual(answers[1])

  const { records, head } = await store.eventLog.read(bcId, 0, {}, never)
  expect(head.last).toBe(last)
  expect(records.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: last }, (_, index) => index + 1),
  )
  const changed = records
    .map(decodeRunEvent)
    .flatMap((event) => (event.type === 'file_change' ? [`${event.action} ${event.path}`] : []))
  expect(changed).toEqual([...[1, 2, 3, 4, 5].map((n) => `created f${n}`), 'modified f3'])

  await lose(first)
  const next = await provision(2)
  expect(await runInside(next, 'cat f1 f2 f3 f4 f5; ls | wc -l')).toBe(
    'first 1\nfirst 2\nlater\nfirst 4\nfirst 5\n6',
  )
  expect((await events('recovery')).at(-1)).toMatchObject({ incarnation: 2, replayed: 5, proven: true })
  await captureNow(next)
  expect(await events('file_change')).toHaveLength(6)
})
