import { createHash } from 'node:crypto'
import { mirrorRefs } from '@tutti/core'
import { decodeRunEvent, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { afterEach, expect, test } from 'vitest'
import { createRunLogWriter } from './run-log-writer.ts'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal

let host: TestHost | undefined
afterEach(async () => host?.remove())

test('REC-18 nothing that a replaced incarnation does has an effect', { timeout: 60_000 }, async () => {
  host = await createTestHost({ files: { x: 'x' } })
  const { bcId, deps, store, events: stored, provision, provisionElsewhere, checkpoint } = host
  const old = await provision(1)
  await runInside(old, 'echo 1 > a; echo 1 > b')
  await captureNow(old)
  const base = (await checkpoint(old)).commit

  // Its host stands still; another one goes on.
  const next = await provisionElsewhere(2)
  await runInside(next, 'echo 2 > a; rm b; echo 2 > c')
  await captureNow(next)
  const { manifestDigest } = (await stored('workspace_captured')).at(-1)!
  const ref = mirrorRefs.checkpoint(bcId)
  expect(await next.mirror.readRef(ref, never)).toBe(base)
  const made = await checkpoint(next)
  const { last } = await store.eventLog.head(bcId, never)

  // It has nothing new, but its commit would be the newest checkpoint.
  await expect(checkpoint(old)).rejects.toThrow(/epoch 2/)
  expect(await next.mirror.readRef(ref, never)).toBe(made.commit)

  const fenced = { code: 'aborted', detail: { fenced: true, epoch: 2 } }
  const events = Array.from({ length: 20 }, (_, stepId): RunEvent => ({ type: 'step_started', stepId }))
  const { eventLog } = deps
  // Under the number that it would have gone on with, and under every other one.
  for (const [index, event] of events.entries()) {
    const append = eventLog.append(
      bcId,
      { id: 'sandbox', epoch: 1, sequence: index + 1 },
      [encodeRunEvent(event)],
      never,
    )
    await expect(append).rejects.toMatchObject(fenced)
  }
  await old.log.write(events[0]!)
  await expect(old.log.flush()).rejects.toMatchObject(fenced)
  for (const event of events) await expect(old.log.write(event)).rejects.toMatchObject(fenced)
  // Nor can a new writer take its place.
  const writer = createRunLogWriter({
    ...deps,
    log: bcId,
    producer: { id: 'sandbox', epoch: 1 },
    signal: never,
  })
  await expect(writer).rejects.toMatchObject(fenced)

  // Blobs are named by their content: they are there, and nothing names them.
  await runInside(old, 'echo stale > a; for n in 1 2 3 4 5; do echo stale $n > stale-$n; done')
  await expect(captureNow(old)).rejects.toMatchObject(fenced)
  await expect(checkpoint(old)).rejects.toMatchObject({ type: 'sandbox_lost' })
  expect(await next.mirror.readRef(ref, never)).toBe(made.commit)
  expect((await store.catalog.agents.get('local', bcId, never)).commit).toBe(made.commit)
  expect((await store.eventLog.head(bcId, never)).last).toBe(last)

  const { records } = await store.eventLog.read(bcId, 0, {}, never)
  const stale = `sha256_${createHash('sha256').update('stale 1\n').digest('hex')}`
  expect(JSON.stringify(records.map(decodeRunEvent))).not.toContain(stale)
  await host.lose(next)
  const third = await provisionElsewhere(3)
  expect((await stored('recovery')).at(-1)).toMatchObject({ incarnation: 3, manifestDigest, proven: true })
  expect(await runInside(third, 'cat a c; ls')).toBe('2\n2\na\nc\nx')
})
