import { expect, test } from 'vitest'
import { retry } from './retry.ts'

const never = new AbortController().signal
const limits = { patienceMs: 10_000, firstPauseMs: 1, longestPauseMs: 4 }
const passing = () => Object.assign(new Error('reset'), { code: 'ECONNRESET' })

test('what passes is tried again, what does not is not', async () => {
  let tries = 0
  const late = await retry(limits, never, async () => {
    tries += 1
    if (tries < 5) throw passing()
    return tries
  })
  expect(late).toBe(5)
  await expect(
    retry(limits, never, async () => {
      tries += 1
      throw new Error('for good')
    }),
  ).rejects.toThrow('for good')
  expect(tries).toBe(6)
})

test('no try begins after the patience is over, and the last failure is told', async () => {
  let tries = 0
  const failing = retry({ ...limits, patienceMs: 0 }, never, async () => {
    tries += 1
    throw passing()
  })
  await expect(failing).rejects.toThrow('reset')
  expect(tries).toBe(1)
})

test('many who were refused at once do not come back at once: the pause of each is drawn from half of it up', async () => {
  // Whoever draws more than the patience gives up at once.
  const drawing = { patienceMs: 600, firstPauseMs: 800, longestPauseMs: 800 }
  const one = async (): Promise<'came back' | 'gave up'> => {
    let tries = 0
    const done = retry(drawing, never, async () => {
      tries += 1
      if (tries === 1) throw passing()
      return 'came back' as const
    })
    return done.catch(() => 'gave up' as const)
  }
  const all = await Promise.all(Array.from({ length: 40 }, one))
  expect(new Set(all)).toEqual(new Set(['came back', 'gave up']))
})

test('the pause that a server asks for is kept to, up to the longest', async () => {
  const asked = Object.assign(new Error('slow down'), {
    name: 'SlowDown',
    $metadata: { httpStatusCode: 503 },
    $response: { headers: { 'retry-after': '3600' } },
  })
  const started = performance.now()
  let tries = 0
  await retry({ ...limits, longestPauseMs: 50 }, never, async () => {
    tries += 1
    if (tries === 1) throw asked
  })
  expect(performance.now() - started).toBeGreaterThanOrEqual(45)
})

test('a caller who gives up during a pause hears so at once', async () => {
  const caller = new AbortController()
  const waiting = retry(
    { patienceMs: 1e9, firstPauseMs: 1e8, longestPauseMs: 1e8 },
    caller.signal,
    async () => {
      setImmediate(() => caller.abort())
      throw passing()
    },
  )
  await expect(waiting).rejects.toMatchObject({ code: 'cancelled' })
})
