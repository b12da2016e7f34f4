import { expect, test } from 'vitest'
import { cancelledBy, orCancelled, throwIfCancelled } from './cancellation.ts'

test('an abort is told as cancelled, with its reason as the cause', () => {
  const reason = new Error('too late')
  const aborted = AbortSignal.abort(reason)
  expect(cancelledBy(aborted)).toMatchObject({ code: 'cancelled', cause: reason })
  expect(() => throwIfCancelled(aborted)).toThrow('The call was cancelled.')
  expect(throwIfCancelled(new AbortController().signal)).toBeUndefined()
})

test('a caller who gives up is not held by what goes on', async () => {
  const controller = new AbortController()
  const waiting = orCancelled(new Promise(() => {}), controller.signal)
  controller.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'cancelled' })
  // A failure that nobody hears any more is no unhandled rejection.
  await expect(orCancelled(Promise.reject(new Error('late')), AbortSignal.abort())).rejects.toMatchObject({
    code: 'cancelled',
  })
})

test('an outcome that comes first is passed on', async () => {
  const { signal } = new AbortController()
  await expect(orCancelled(Promise.resolve(1), signal)).resolves.toBe(1)
  await expect(orCancelled(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
})
