import { describe, expect, test } from 'vitest'
import { createManualClock } from './manual-clock.ts'
import { systemClock } from './system-clock.ts'

const never = new AbortController().signal

describe('the manual clock', () => {
  test('stands still until it is advanced, and wakes those that are due in order', async () => {
    const clock = createManualClock(1000)
    const woken: string[] = []
    const sleep = (name: string, ms: number) => clock.sleep(ms, never).then(() => void woken.push(name))
    const all = [sleep('late', 30), sleep('first', 10), sleep('second', 20)]
    await Promise.resolve()
    expect([clock.now(), clock.monotonic(), woken]).toEqual([1000, 0, []])
    clock.advance(20)
    await Promise.all(all.slice(1))
    expect([clock.now(), clock.monotonic(), woken]).toEqual([1020, 20, ['first', 'second']])
    clock.advance(10)
    await Promise.all(all)
    expect(woken).toEqual(['first', 'second', 'late'])
  })

  test('an aborted sleep is cancelled, before and while it sleeps', async () => {
    const clock = createManualClock()
    await expect(clock.sleep(10, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
    const controller = new AbortController()
    const sleeping = clock.sleep(10, controller.signal)
    controller.abort()
    await expect(sleeping).rejects.toMatchObject({ code: 'cancelled' })
    clock.advance(10)
  })

  test('a sleep of no time ends by itself', async () => {
    await expect(createManualClock().sleep(0, never)).resolves.toBeUndefined()
  })
})

describe("the machine's clock", () => {
  test('sleeps at least as long as it was told, and cancels', async () => {
    const before = systemClock.monotonic()
    await systemClock.sleep(20, never)
    // Timers may fire a fraction of a millisecond early.
    expect(systemClock.monotonic() - before).toBeGreaterThan(18)
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
    await expect(systemClock.sleep(60_000, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
    const controller = new AbortController()
    const sleeping = systemClock.sleep(60_000, controller.signal)
    controller.abort(new Error('why'))
    await expect(sleeping).rejects.toMatchObject({ code: 'cancelled' })
  })
})
