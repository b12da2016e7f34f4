import { randomBytes } from 'node:crypto'
import { agentId, type LogId } from '@tutti/core'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ArchivedRecord, EventLog, LogRecord, NewRecord } from './port.ts'

const never = new AbortController().signal
const newLog = (): LogId => agentId(Date.now(), randomBytes(10))
const texts = (...bodies: string[]): NewRecord[] => bodies.map((body) => ({ type: 'text', body }))
const by = (sequence: number, id = 'workflow/1', epoch = 0) => ({ id, epoch, sequence })

/** What every event log must do: `testEventLogContract('sqlite', () => …)`. */
export function testEventLogContract(name: string, createLog: () => Promise<EventLog>): void {
  describe(`event log: ${name}`, () => {
    let events: EventLog
    let log: LogId
    beforeEach(async () => {
      events = await createLog()
      log = newLog()
      await events.create(log, 'owner', never)
    })

    const readAll = async (from = 0): Promise<LogRecord[]> => {
      const records: LogRecord[] = []
      for (let position = from; ;) {
        const { records: some, next, head } = await events.read(log, position, { maxBytes: 2000 }, never)
        records.push(...some)
        position = next
        if (next === head.last) return records
      }
    }

    test('starts empty, and creating it again changes nothing', async () => {
      expect(await events.head(log, never)).toEqual({ last: 0, closed: false, archived: 0 })
      expect(await events.read(log, 0, {}, never)).toEqual({
        records: [],
        next: 0,
        head: { last: 0, closed: false, archived: 0 },
      })
      await events.append(log, by(1), texts('a'), never)
      await events.create(log, 'owner', never)
      expect((await events.head(log, never)).last).toBe(1)
    })

    test('numbers records from 1 and gives them back as they were', async () => {
      const body = JSON.stringify({ text: 'ü\n\0😀' })
      expect(await events.append(log, by(1), texts('{}', body), never)).toEqual({
        first: 1,
        last: 2,
        repeated: false,
      })
      expect(await events.append(log, by(2), [{ type: 'status', body: '' }], never)).toMatchObject({
        first: 3,
        last: 3,
      })
      const { records, next } = await events.read(log, 0, {}, never)
      expect(next).toBe(3)
      expect(records).toMatchObject([
        { sequence: 1, type: 'text', body: '{}', producer: 'workflow/1', epoch: 0 },
        { sequence: 2, body },
        { sequence: 3, type: 'status', body: '' },
      ])
      expect((await events.read(log, 2, {}, never)).records.map(({ sequence }) => sequence)).toEqual([3])
    })

    test('gives what is not archived to be stored, once it was, and to another log as it was', async () => {
      await events.append(log, by(1), texts('a', 'b'), never)
      await events.append(log, by(1, 'sandbox', 4), texts('c'), never)
      const archived: ArchivedRecord[] = []
      const archive = () =>
        events.archiveSegment(log, async (records) => void archived.push(...records), never)
      const open = async (stillSince: number, orMoreThan = 1000) =>
        (await events.listUnarchived(stillSince, orMoreThan, never)).filter((found) => found.log === log)
      const later = Date.now() + 60_000
      expect(await open(later)).toEqual([{ log, owner: 'owner' }])
      expect(await open(0)).toEqual([])
      expect(await open(0, 2)).toHaveLength(1)
      await expect(
        events.archiveSegment(log, () => Promise.reject(new Error('the store is down')), never),
      ).rejects.toThrow('the store is down')
      expect((await events.head(log, never)).archived).toBe(0)
      expect(await archive()).toBe(true)
      expect(await archive()).toBe(false)
      expect((await events.head(log, never)).archived).toBe(3)
      expect(archived.map(({ sequence, body }) => [sequence, body])).toEqual([
        [1, 'a'],
        [2, 'b'],
        [3, 'c'],
      ])
      expect(archived[2]).toMatchObject({ producer: 'sandbox', epoch: 4, producerSequence: 1 })
      expect(await open(later)).toEqual([])
      await events.append(log, by(2), texts('d'), never)
      expect(await archive()).toBe(true)
      expect(archived.at(-1)).toMatchObject({ sequence: 4, producerSequence: 2 })

      const other = newLog()
      await events.create(other, 'owner', never)
      await events.restoreSegment(other, archived.slice(0, 2), never)
      await expect(events.restoreSegment(other, archived.slice(3), never)).rejects.toMatchObject({
        code: 'out_of_range',
      })
      await events.restoreSegment(other, archived.slice(1), never)
      const { records } = await events.read(other, 0, {}, never)
      expect(records).toEqual((await events.read(log, 0, {}, never)).records)
      // Producers go on where they were.
      expect(await events.expected(other, 'workflow/1', 0, never)).toBe(3)
      await expect(events.append(other, by(1, 'sandbox', 3), texts('x'), never)).rejects.toMatchObject({
        code: 'aborted',
      })
      expect((await events.listUnarchived(later, 0, never)).map((found) => found.log)).not.toContain(other)
      await expect(events.archiveSegment(newLog(), async () => {}, never)).rejects.toMatchObject({
        code: 'not_found',
      })
    })

    test('does not know a log that was not created', async () => {
      const other = newLog()
      const unknown = { code: 'not_found' }
      await expect(events.append(other, by(1), texts('a'), never)).rejects.toMatchObject(unknown)
      await expect(events.read(other, 0, {}, never)).rejects.toMatchObject(unknown)
      await expect(events.head(other, never)).rejects.toMatchObject(unknown)
      await expect(events.close(other, never)).rejects.toMatchObject(unknown)
      await expect(events.expected(other, 'x', 0, never)).rejects.toMatchObject(unknown)
    })

    test('answers a repeated append with its first answer, also after others and after the end', async () => {
      const first = await events.append(log, by(1), texts('a', 'b'), never)
      await events.append(log, by(2), texts('c'), never)
      await events.append(log, by(1, 'client/x'), texts('d'), never)
      expect(await events.append(log, by(1), texts('a', 'b'), never)).toEqual({ ...first, repeated: true })
      await events.close(log, never)
      expect(await events.append(log, by(2), texts('c'), never)).toEqual({
        first: 3,
        last: 3,
        repeated: true,
      })
      expect((await readAll()).map(({ body }) => body)).toEqual(['a', 'b', 'c', 'd'])
    })

    test('refuses a gap and says which number it expects', async () => {
      await events.append(log, by(1), texts('a'), never)
      await expect(events.append(log, by(3), texts('c'), never)).rejects.toMatchObject({
        code: 'aborted',
        detail: { expected: 2 },
      })
      await expect(events.append(log, by(2, 'client/new'), texts('c'), never)).rejects.toMatchObject({
        code: 'aborted',
        detail: { expected: 1 },
      })
      expect(await events.expected(log, 'workflow/1', 0, never)).toBe(2)
      expect(await events.expected(log, 'client/new', 0, never)).toBe(1)
    })

    test('fences an older epoch, also for what it had stored, and starts a new epoch at 1', async () => {
      await events.append(log, by(1, 'sandbox', 1), texts('a'), never)
      await events.append(log, by(2, 'sandbox', 1), texts('b'), never)
      expect(await events.expected(log, 'sandbox', 2, never)).toBe(1)
      await events.append(log, by(1, 'sandbox', 2), texts('c'), never)
      const fenced = { code: 'aborted', detail: { fenced: true } }
      await expect(events.append(log, by(3, 'sandbox', 1), texts('x'), never)).rejects.toMatchObject(fenced)
      await expect(events.append(log, by(2, 'sandbox', 1), texts('b'), never)).rejects.toMatchObject(fenced)
      await expect(events.expected(log, 'sandbox', 1, never)).rejects.toMatchObject(fenced)
      await events.append(log, by(1), texts('other producers are not concerned'), never)
      expect((await events.head(log, never)).last).toBe(4)
    })

    test('refuses an append without records or with wrong numbers', async () => {
      const wrong = { code: 'invalid_argument' }
      await expect(events.append(log, by(1), [], never)).rejects.toMatchObject(wrong)
      await expect(events.append(log, by(0), texts('a'), never)).rejects.toMatchObject(wrong)
      await expect(events.append(log, by(1.5), texts('a'), never)).rejects.toMatchObject(wrong)
      await expect(events.read(log, -1, {}, never)).rejects.toMatchObject(wrong)
    })

    test('keeps numbers without gap or double under many producers at once', async () => {
      const producers = Array.from({ length: 20 }, (_, index) => `client/${index}`)
      await Promise.all(
        producers.map(async (id) => {
          for (let sequence = 1; sequence <= 10; sequence += 1) {
            await events.append(log, by(sequence, id), texts(`${sequence}`, `${sequence}`), never)
          }
        }),
      )
      const records = await readAll()
      expect(records.map(({ sequence }) => sequence)).toEqual(
        Array.from({ length: 400 }, (_, index) => index + 1),
      )
      for (const id of producers) {
        const bodies = records.filter(({ producer }) => producer === id).map(({ body }) => Number(body))
        expect(bodies).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10])
      }
    })

    test('stores each of the same append that is sent many times at once only once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => events.append(log, by(1), texts('a'), never)),
      )
      expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1)
      expect((await events.head(log, never)).last).toBe(1)
    })

    test('stops a read at maxBytes, after at least one record', async () => {
      await events.append(log, by(1), texts('x'.repeat(600), 'y'.repeat(600), 'z'.repeat(600)), never)
      const { records, next, head } = await events.read(log, 0, { maxBytes: 1000 }, never)
      expect([records.length, next, head.last]).toEqual([2, 2, 3])
      expect((await events.read(log, 2, { maxBytes: 1 }, never)).records).toHaveLength(1)
    })

    test('filters by type; the position goes on over what was left out', async () => {
      const mixed = ['text', 'command', 'text'].map((type) => ({ type, body: type }))
      await events.append(log, by(1), mixed, never)
      const { records, next } = await events.read(log, 0, { types: ['command'] }, never)
      expect([records.map(({ sequence }) => sequence), next]).toEqual([[2], 3])
      expect(await events.read(log, 0, { types: ['none'] }, never)).toMatchObject({ records: [], next: 3 })
    })

    test('reads no further than it is told', async () => {
      await events.append(log, by(1), texts('a', 'b', 'c'), never)
      const { records, next, head } = await events.read(log, 0, { until: 2 }, never)
      expect([records.length, next, head.last]).toEqual([2, 2, 3])
      const options = { until: 2, types: ['none'], waitMs: 20_000 }
      for (const unchecked of [false, true])
        expect(await events.read(log, 1, { ...options, unchecked }, never)).toMatchObject({
          records: [],
          next: 2,
        })
    })

    test('a filtered read that checks no other records finds the same', async () => {
      const mixed = ['text', 'command', 'text', 'command'].map((type) => ({ type, body: type }))
      await events.append(log, by(1), mixed, never)
      const read = (options: object) =>
        events.read(log, 0, { types: ['command'], unchecked: true, ...options }, never)
      expect(await read({})).toEqual(await events.read(log, 0, { types: ['command'] }, never))
      expect(await read({ maxBytes: 1 })).toMatchObject({ records: [{ sequence: 2 }], next: 2 })
      expect(await read({ types: ['none'] })).toMatchObject({ records: [], next: 4 })
    })

    test('a filtered reader waits on over records of other types', async () => {
      const reading = events.read(log, 0, { waitMs: 20_000, types: ['command'] }, never)
      await events.append(log, by(1), texts('a'), never)
      await events.append(log, by(2), texts('b'), never)
      await events.append(log, by(3), [{ type: 'command', body: 'stop' }], never)
      expect(await reading).toMatchObject({ records: [{ sequence: 3 }], next: 3 })
    })

    test('says out_of_range beyond the end', async () => {
      await events.append(log, by(1), texts('a'), never)
      expect((await events.read(log, 1, {}, never)).records).toEqual([])
      await expect(events.read(log, 2, {}, never)).rejects.toMatchObject({ code: 'out_of_range' })
    })

    test('wakes everyone who waits, and answers empty when the time is over', async () => {
      expect(await events.read(log, 0, { waitMs: 20 }, never)).toMatchObject({ records: [], next: 0 })
      const readers = Array.from({ length: 200 }, () => events.read(log, 0, { waitMs: 20_000 }, never))
      await events.append(log, by(1), texts('a'), never)
      for (const { records } of await Promise.all(readers))
        expect(records.map(({ body }) => body)).toEqual(['a'])
    })

    test('tells waiting readers when the log is closed; it takes nothing after that', async () => {
      const reading = events.read(log, 0, { waitMs: 20_000 }, never)
      await events.close(log, never)
      await events.close(log, never)
      expect(await reading).toMatchObject({ records: [], head: { closed: true } })
      await expect(events.append(log, by(1), texts('a'), never)).rejects.toMatchObject({
        code: 'failed_precondition',
      })
    })

    test('says cancelled when the caller gave up, before or while waiting', async () => {
      const gone = AbortSignal.abort()
      const cancelled = { code: 'cancelled' }
      await expect(events.append(log, by(1), texts('a'), gone)).rejects.toMatchObject(cancelled)
      await expect(events.read(log, 0, {}, gone)).rejects.toMatchObject(cancelled)
      await expect(events.head(log, gone)).rejects.toMatchObject(cancelled)
      expect((await events.head(log, never)).last).toBe(0)
      const caller = new AbortController()
      const reading = events.read(log, 0, { waitMs: 20_000 }, caller.signal)
      setImmediate(() => caller.abort())
      await expect(reading).rejects.toMatchObject(cancelled)
    })

    test('STR-08 readers who join at random moments see 1..N, none missing, doubled or out of order', async () => {
      const count = 600
      const follow = async () => {
        const seen: number[] = []
        for (let position = 0; seen.length < count;) {
          const { records, next } = await events.read(log, position, { waitMs: 20_000, maxBytes: 500 }, never)
          seen.push(...records.map(({ sequence }) => sequence))
          position = next
        }
        return seen
      }
      const readers: Promise<number[]>[] = []
      for (let sequence = 1; sequence <= count; sequence += 1) {
        if (sequence % 12 === 0) readers.push(follow())
        await events.append(log, by(sequence), texts(`record ${sequence}`), never)
      }
      const expected = Array.from({ length: count }, (_, index) => index + 1)
      for (const seen of await Promise.all(readers)) expect(seen).toEqual(expected)
    })
  })
}
