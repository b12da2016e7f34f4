import { expect, test } from 'vitest'
import { createCallee, type CallHandler } from './callee.ts'
import { createCaller, type WireHeader } from './caller.ts'
import { createLink } from './link.ts'

const never = new AbortController().signal

/** Both ends over a stream that keeps order and is never synchronous. */
function connect(handlers: Record<string, CallHandler>) {
  const near = createLink({ onMessage: (header, bytes) => caller.onMessage(header as WireHeader, bytes) })
  const far = createLink({ onMessage: (header, bytes) => callee(header as WireHeader, bytes) })
  const caller = createCaller(near)
  const callee = createCallee(far, handlers)
  near.attach(async (bytes) => void setImmediate(() => far.receive(bytes)))
  far.attach(async (bytes) => void setImmediate(() => near.receive(bytes)))
  return { caller, near, far }
}

test('a call carries messages both ways and an answer', async () => {
  const { caller } = connect({
    async double(params: { by: number }, call) {
      let sum = 0
      for await (const { head } of call.messages) {
        sum += head as number
        await call.send((head as number) * params.by)
      }
      return sum
    },
  })
  const call = caller.call('double', { by: 2 }, never)
  for (const value of [1, 2, 3]) await call.send(value)
  call.end()
  const heads: unknown[] = []
  for await (const { head } of call.messages) heads.push(head)
  expect(heads).toEqual([2, 4, 6])
  expect(await call.result).toBe(6)
})

test('failures arrive with their code; what is unknown is said', async () => {
  const { caller } = connect({
    async fails() {
      throw new Error('disk on fire')
    },
  })
  await expect(caller.call('fails', {}, never).result).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining('disk on fire'),
  })
  await expect(caller.call('missing', {}, never).result).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(caller.call('fails', {}, AbortSignal.abort()).result).rejects.toMatchObject({
    code: 'cancelled',
  })
})

test('an abort reaches the handler, and the caller waits until it has cleaned up', async () => {
  const { promise: aborted, resolve: sayAborted } = Promise.withResolvers<void>()
  const { promise: cleaned, resolve: clean } = Promise.withResolvers<void>()
  const { caller } = connect({
    async waits(_params, _call, signal) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      sayAborted()
      await cleaned
    },
    async echoes() {
      return 'echo'
    },
  })
  const abort = new AbortController()
  const call = caller.call('waits', {}, abort.signal)
  let hasEnded = false
  const end = call.result.finally(() => (hasEnded = true)).catch((error: unknown) => error)
  abort.abort()
  await aborted
  // A whole round trip later the caller still waits.
  expect(await caller.call('echoes', {}, never).result).toBe('echo')
  expect(hasEnded).toBe(false)
  clean()
  expect(await end).toMatchObject({ code: 'cancelled' })
})

test('a call that nobody reads stops its sender, and only it', async () => {
  let sent = 0
  const { caller } = connect({
    async floods(_params, call) {
      for (let index = 0; index < 200; index += 1) {
        await call.send('chunk', Buffer.alloc(64 << 10))
        sent += 1
      }
    },
    async echoes() {
      return 'echo'
    },
  })
  const flood = caller.call('floods', {}, never)
  for (let round = 0; round < 20; round += 1)
    expect(await caller.call('echoes', {}, never).result).toBe('echo')
  expect(sent).toBeLessThan(40)
  let seen = 0
  for await (const { bytes } of flood.messages) seen += bytes.length
  expect(seen).toBe(200 * (64 << 10))
})

test('an end that ignores its window breaks the link instead of filling memory', () => {
  const caller = createCaller({ send: async () => {} })
  void caller.call('floods', {}, never).result.catch(() => {})
  const flood = () => {
    for (let index = 0; index < 1000; index += 1) {
      caller.onMessage({ t: 'msg', c: 1, head: 'chunk' }, Buffer.alloc(64 << 10))
    }
  }
  expect(flood).toThrow('more than it may')
})

test('a broken link fails every open and later call', async () => {
  const { caller } = connect({ waits: () => new Promise(() => {}) })
  const open = caller.call('waits', {}, never)
  const gone = Object.assign(new Error('gone'), { code: 'unavailable' })
  caller.fail(gone as never)
  await expect(open.result).rejects.toBe(gone)
  await expect(open.messages[Symbol.asyncIterator]().next()).rejects.toBe(gone)
  await expect(caller.call('waits', {}, never).result).rejects.toBe(gone)
})
