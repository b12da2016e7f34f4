import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { blobIdOf } from '@tutti/blob-store'
import { createFaultProxy, type Fault, type FaultProxy, type ProxiedRequest } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeOnS3 } from './describe-on-s3.ts'
import { patternBytes } from './pattern-bytes.ts'

const never = new AbortController().signal
/** Where a server says nothing it is given up soon; elsewhere a busy machine shall not look like that. */
const patienceWith = ({ kind }: Fault) =>
  kind === 'black_hole' || kind === 'stall_answer' ? { inactivityMs: 1500 } : {}

const passing: readonly Fault[] = [
  { kind: 'refuse' },
  { kind: 'reset_request', afterBytes: 1000 },
  { kind: 'black_hole' },
  { kind: 'error', status: 503, code: 'SlowDown' },
  { kind: 'error', status: 503, code: 'ServiceUnavailable' },
  { kind: 'error', status: 500, code: 'InternalError' },
  { kind: 'error', status: 409, code: 'ConditionalRequestConflict' },
  { kind: 'error', status: 400, code: 'RequestTimeout' },
  { kind: 'duplicate_answer' },
  { kind: 'lost_answer' },
]
const nameOf = (fault: Fault) => [fault.kind, 'code' in fault ? fault.code : ''].join(' ').trim()
const words = ({ method, url, fault }: ProxiedRequest) =>
  `${method}${/\?(uploads|partNumber=\d+|uploadId)/.exec(url)?.[0] ?? ''}${fault ? ` ${nameOf(fault)}` : ''}`

describeOnS3('faults', (bucket) => {
  let proxy: FaultProxy
  beforeEach(async () => {
    proxy = await createFaultProxy(bucket().server.endpoint)
  })
  afterEach(() => proxy.close())

  let stores = 0
  /** One through the proxy, and one that sees what is in the bucket. */
  const pair = (limits = {}) => {
    stores += 1
    const own = { prefix: `faults/${stores}` }
    return {
      store: bucket().store({ ...own, endpoint: proxy.endpoint, limits }),
      direct: bucket().store(own),
    }
  }
  const uploads = async () => {
    const { client, name } = bucket()
    const page = await client.send(
      new ListMultipartUploadsCommand({ Bucket: name, Prefix: `faults/${stores}/` }),
    )
    return page.Uploads ?? []
  }

  describe('a put', () => {
    test.each(
      [...passing, { kind: 'corrupt_request', atByte: 5000 } as const].map(
        (fault) => [nameOf(fault), fault] as const,
      ),
    )('survives %s', async (_name, fault) => {
      const { store, direct } = pair(patienceWith(fault))
      const bytes = patternBytes(20_000, 1)
      proxy.fail(fault)
      expect(await store.put(bytes, never)).toBe(blobIdOf(bytes))
      expect(Buffer.compare(await direct.get(blobIdOf(bytes), never), bytes)).toBe(0)
    })

    test('knows its own lost answer for a success, after it has looked', async () => {
      const { store } = pair()
      proxy.fail({ kind: 'lost_answer' })
      await store.put(patternBytes(20_000, 2), never)
      expect(proxy.requests.map(words)).toEqual(['PUT lost_answer', 'PUT', 'HEAD'])
    })

    test('that is refused to the end is told, and nothing is stored', async () => {
      const { store, direct } = pair({ patienceMs: 200 })
      const bytes = patternBytes(20_000, 3)
      proxy.fail({ kind: 'error', status: 503, code: 'SlowDown' }, { times: 1000 })
      await expect(store.put(bytes, never)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining(proxy.endpoint),
        detail: { reason: 'overloaded', s3: 'SlowDown', bucket: 'blobs' },
      })
      expect(proxy.requests.length).toBeGreaterThan(3)
      expect(await direct.has(blobIdOf(bytes), never)).toBe(false)
    })

    test('what does not pass is not repeated', async () => {
      const { store } = pair()
      proxy.fail({ kind: 'error', status: 403, code: 'AccessDenied' }, { times: 1000 })
      await expect(store.put(patternBytes(10, 4), never)).rejects.toMatchObject({
        code: 'unavailable',
        detail: { reason: 'access_denied', status: 403 },
      })
      expect(proxy.requests).toHaveLength(1)
    })
  })

  describe('a big put', { timeout: 60_000 }, () => {
    const big = patternBytes((17 << 20) + 1, 5)
    const steps = {
      begin: ({ method, url }: ProxiedRequest) => method === 'POST' && url.includes('?uploads'),
      'second part': ({ url }: ProxiedRequest) => url.includes('partNumber=2'),
      end: ({ method, url }: ProxiedRequest) => method === 'POST' && url.includes('uploadId='),
    }
    const cases = Object.entries(steps).flatMap(([step, when]) =>
      (
        [
          { kind: 'reset_request', afterBytes: step === 'second part' ? 1 << 20 : 10 },
          { kind: 'black_hole' },
          { kind: 'error', status: 503, code: 'SlowDown' },
          { kind: 'lost_answer' },
          { kind: 'corrupt_request', atByte: step === 'second part' ? 1 << 20 : 0 },
        ] satisfies Fault[]
      ).map((fault) => [nameOf(fault), step, fault, when] as const),
    )
    // What begins an upload has no body, and at its end a damaged one is for the server to refuse.
    const sensible = cases.filter(
      ([, step, { kind }]) => kind !== 'corrupt_request' || step === 'second part',
    )

    test.each(sensible)('survives %s at its %s', async (_name, step, fault, when) => {
      const { store, direct } = pair(patienceWith(fault))
      proxy.fail(fault, { when })
      expect(await store.put(big, never)).toBe(blobIdOf(big))
      expect(Buffer.compare(await direct.get(blobIdOf(big), never), big)).toBe(0)
      // Of an upload whose beginning was answered to nobody nobody knows the name; a later store aborts it.
      expect(await uploads()).toHaveLength(step === 'begin' && fault.kind === 'lost_answer' ? 1 : 0)
    })

    test('that fails or is cancelled leaves no parts', async () => {
      const { store } = pair({ patienceMs: 0 })
      proxy.fail({ kind: 'error', status: 503, code: 'SlowDown' }, { when: steps['second part'] })
      await expect(store.put(big, never)).rejects.toMatchObject({ code: 'unavailable' })
      expect(await uploads()).toEqual([])

      const caller = new AbortController()
      proxy.fail({ kind: 'black_hole' }, { when: steps['second part'] })
      const cancelled = store.put(big, caller.signal)
      void proxy.nextFault().then(() => caller.abort())
      await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' })
      await expect.poll(uploads, { timeout: 10_000 }).toEqual([])
    })
  })

  describe('a read', () => {
    const faults: readonly Fault[] = [
      ...passing,
      { kind: 'reset_answer', afterBytes: 100_000 },
      { kind: 'stall_answer', afterBytes: 100_000 },
      { kind: 'reset_answer', afterBytes: 0 },
    ]
    test.each(faults.map((fault) => [nameOf(fault), fault] as const))('survives %s', async (_name, fault) => {
      const { store, direct } = pair(patienceWith(fault))
      const bytes = patternBytes(1_000_000, 6)
      const id = await direct.put(bytes, never)
      proxy.fail(fault, { times: 2 })
      expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
      proxy.fail(fault)
      const part = await store.get(id, never, { start: 200_000, end: 900_000 })
      expect(Buffer.compare(part, bytes.subarray(200_000, 900_000))).toBe(0)
      expect(await store.has(id, never)).toBe(true)
    })

    test('reads on where a connection broke', async () => {
      const { store, direct } = pair()
      const id = await direct.put(patternBytes(1_000_000, 7), never)
      proxy.fail({ kind: 'reset_answer', afterBytes: 600_000 })
      await store.get(id, never)
      const [first, second] = proxy.requests
      expect(first!.headers['range']).toBeUndefined()
      // A reset takes what was not read yet with it.
      expect(second!.headers['range']).toMatch(/^bytes=[1-9]\d*-$/)
    })

    test('never gives out a damaged byte as whole', async () => {
      const { store, direct } = pair()
      const bytes = patternBytes(300_000, 8)
      const id = await direct.put(bytes, never)
      const fault = { kind: 'corrupt_answer', atByte: 150_000 } as const
      proxy.fail(fault)
      expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
      proxy.fail(fault)
      const streamed = (async () => {
        for await (const _ of store.stream(id, never));
      })()
      await expect(streamed).rejects.toMatchObject({
        code: 'unavailable',
        detail: { reason: 'damaged_in_transit', id },
      })
      proxy.fail(fault, { times: 2 })
      await expect(store.get(id, never)).rejects.toMatchObject({ code: 'data_loss' })
    })

    test('a server that never answers is given up, and so is the wait for it', async () => {
      const { store } = pair({ inactivityMs: 50, patienceMs: 100 })
      proxy.fail({ kind: 'black_hole' }, { times: 1000 })
      await expect(store.has(blobIdOf('x'), never)).rejects.toMatchObject({
        code: 'unavailable',
        detail: { reason: 'unreachable' },
      })
      const caller = new AbortController()
      const waiting = pair({ inactivityMs: 60_000 }).store.get(blobIdOf('x'), caller.signal)
      void proxy.nextFault().then(() => caller.abort())
      await expect(waiting).rejects.toMatchObject({ code: 'cancelled' })
    })

    test('a caller who gives up in the middle of a blob hears so at once', async () => {
      const { store, direct } = pair({ inactivityMs: 60_000 })
      const id = await direct.put(patternBytes(500_000, 9), never)
      proxy.fail({ kind: 'stall_answer', afterBytes: 100_000 })
      const caller = new AbortController()
      const reading = (async () => {
        for await (const _ of store.stream(id, caller.signal)) setImmediate(() => caller.abort())
      })()
      await expect(reading).rejects.toMatchObject({ code: 'cancelled' })
    })
  })

  test('an address where nothing listens is unreachable', async () => {
    const { store } = pair({ patienceMs: 0 })
    const { endpoint } = proxy
    await proxy.close()
    proxy = await createFaultProxy(bucket().server.endpoint)
    await expect(store.put(patternBytes(10, 1), never)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`${endpoint} does not answer (ECONNREFUSED)`),
      detail: { reason: 'unreachable', endpoint, bucket: 'blobs' },
    })
  })
})
