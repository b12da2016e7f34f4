import { expect, test } from 'vitest'
import { createSlots } from './slots.ts'

const never = new AbortController().signal

test('so many run at once, the others in order; a failure frees its slot', async () => {
  const slots = createSlots(2)
  const begun: number[] = []
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const all = gates.map((gate, index) =>
    slots(never, async () => {
      begun.push(index)
      await gate.promise
    }),
  )
  await expect.poll(() => begun).toEqual([0, 1])
  gates[1]!.reject(new Error('failed'))
  await expect(all[1]).rejects.toThrow('failed')
  await expect.poll(() => begun).toEqual([0, 1, 2])
  for (const gate of gates) gate.resolve()
  await Promise.allSettled(all)
  expect(begun).toEqual([0, 1, 2, 3])
})

test('who gives up while waiting takes no slot with it', async () => {
  const slots = createSlots(1)
  const gate = Promise.withResolvers<void>()
  const first = slots(never, () => gate.promise)
  const caller = new AbortController()
  const second = slots(caller.signal, async () => 'second')
  const third = slots(never, async () => 'third')
  caller.abort()
  await expect(second).rejects.toMatchObject({ code: 'cancelled' })
  gate.resolve()
  await first
  expect(await third).toBe('third')
  expect(await slots(never, async () => 'fourth')).toBe('fourth')
})
