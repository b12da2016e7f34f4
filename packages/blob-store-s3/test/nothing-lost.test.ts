import { blobIdOf } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import { createFaultProxy, type Fault, type FaultProxy } from '@tutti/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeOnS3, type TestBucket } from './describe-on-s3.ts'
import { patternBytes } from './pattern-bytes.ts'

const never = new AbortController().signal

/** What was acknowledged is there and right; what was not is right, or not there. */
async function expectNothingLost(
  bucket: TestBucket,
  prefix: string,
  put: ReadonlyMap<BlobId, Uint8Array>,
  acknowledged: ReadonlySet<BlobId>,
): Promise<void> {
  const store = bucket.store({ prefix })
  for (const [id, bytes] of put) {
    if (!acknowledged.has(id) && !(await store.has(id, never))) continue
    expect(Buffer.compare(await store.get(id, never), bytes), `${id} of ${bytes.length} bytes`).toBe(0)
  }
}

describeOnS3('nothing is lost', (bucket) => {
  let proxy: FaultProxy
  beforeEach(async () => {
    proxy = await createFaultProxy(bucket().server.endpoint)
  })
  afterEach(() => proxy.close())

  test(
    'a server that is killed in the middle of a big put and started again',
    { timeout: 60_000 },
    async () => {
      const { server } = bucket()
      const store = bucket().store({ prefix: 'killed', endpoint: proxy.endpoint })
      const small = await store.put(patternBytes(1000, 1), never)
      const big = patternBytes(20 << 20, 2)
      const again = Promise.withResolvers<void>()
      proxy.fail({ kind: 'hold', until: again.promise }, { when: ({ url }) => url.includes('partNumber=2') })
      const put = store.put(big, never)
      await proxy.nextFault()
      await server.kill()
      await server.restart()
      again.resolve()
      expect(await put).toBe(blobIdOf(big))
      const all = new Map([
        [small, patternBytes(1000, 1)],
        [blobIdOf(big), big],
      ])
      await expectNothingLost(bucket(), 'killed', all, new Set(all.keys()))
    },
  )

  test('a server that is killed under load', { timeout: 60_000 }, async () => {
    const { server } = bucket()
    // Too impatient to see the server come back: some puts fail.
    const store = bucket().store({ prefix: 'load', limits: { patienceMs: 50 } })
    const put = new Map<BlobId, Uint8Array>()
    const acknowledged = new Set<BlobId>()
    const failures = new Set<unknown>()
    let next = 0
    let restarted: Promise<void> | undefined
    const write = async () => {
      while (next < 120) {
        next += 1
        const bytes = patternBytes(1 + ((next * 7919) % 90_000), 100 + next)
        put.set(blobIdOf(bytes), bytes)
        try {
          acknowledged.add(await store.put(bytes, never))
        } catch (error) {
          failures.add(error)
          await restarted
        }
        if (acknowledged.size === 30) restarted ??= server.kill().then(() => server.restart())
      }
    }
    await Promise.all(Array.from({ length: 8 }, write))
    await restarted
    expect(acknowledged.size).toBeGreaterThan(60)
    for (const failure of failures) expect(failure).toMatchObject({ code: 'unavailable' })
    await expectNothingLost(bucket(), 'load', put, acknowledged)
  })

  test('a bad network', { timeout: 60_000 }, async () => {
    const limits = { inactivityMs: 300, patienceMs: 5_000 }
    const store = bucket().store({ prefix: 'network', endpoint: proxy.endpoint, limits })
    const faults: readonly Fault[] = [
      { kind: 'refuse' },
      { kind: 'reset_request', afterBytes: 500 },
      { kind: 'reset_answer', afterBytes: 500 },
      { kind: 'stall_answer', afterBytes: 500 },
      { kind: 'black_hole' },
      { kind: 'lost_answer' },
      { kind: 'duplicate_answer' },
      { kind: 'corrupt_request', atByte: 77 },
      { kind: 'corrupt_answer', atByte: 77 },
      { kind: 'error', status: 503, code: 'SlowDown' },
    ]
    // One request after the other, so that the same ones fail in every run; about every second does.
    let state = 1
    const lot = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
    for (const fault of faults) proxy.fail(fault, { times: 1000, when: () => lot() < 0.07 })

    const put = new Map<BlobId, Uint8Array>()
    const acknowledged = new Set<BlobId>()
    let read = 0
    for (let count = 0; count < 60; count += 1) {
      const bytes = patternBytes(Math.floor(lot() * 60_000), 300 + count)
      put.set(blobIdOf(bytes), bytes)
      try {
        const id = await store.put(bytes, never)
        acknowledged.add(id)
        expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
        read += 1
      } catch (error) {
        // A byte that is damaged twice in a row looks like one that is damaged in the store.
        expect(['unavailable', 'data_loss']).toContain(TuttiError.from(error).code)
      }
    }
    expect(proxy.requests.filter(({ fault }) => fault).length).toBeGreaterThan(50)
    expect(acknowledged.size).toBeGreaterThan(40)
    expect(read).toBeGreaterThan(40)
    await expectNothingLost(bucket(), 'network', put, acknowledged)
  })
})
