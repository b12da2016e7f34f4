import { TuttiError } from '@tutti/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchAnswers } from './watch-answers.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

function watched(ping: () => Promise<void>) {
  const controller = new AbortController()
  const lost = Promise.withResolvers<string>()
  const destroyed: string[] = []
  const session = {
    bcId: 'bc-1',
    killed: false,
    controller,
    sandbox: { ref: { id: 'x' } },
    server: { ping, lost: lost.promise, kill: async () => lost.resolve('signal SIGKILL') },
  }
  const deps = {
    answerTimeoutMs: 1000,
    sandboxes: { destroy: async ({ id }: { id: string }) => void destroyed.push(id) },
    log: { info() {}, warn() {} },
  }
  watchAnswers(...([deps, session] as unknown as Parameters<typeof watchAnswers>))
  return { session, controller, destroyed }
}

test('a sandbox that does not answer is killed when its time is over, and not before', async () => {
  const { session, destroyed } = watched(() => new Promise(() => {}))
  await vi.advanceTimersByTimeAsync(1000)
  expect(session.killed).toBe(false)
  await vi.advanceTimersByTimeAsync(200)
  expect(session.killed).toBe(true)
  expect(destroyed).toEqual(['x'])
  expect(vi.getTimerCount()).toBe(0)
})

test.each<[string, () => Promise<void>]>([
  ['yes', async () => {}],
  ['no', () => Promise.reject(new TuttiError('invalid_argument', 'There is no such method.'))],
])('one that answers %s is left alone, until its session ends', async (_, ping) => {
  const { session, controller } = watched(ping)
  await vi.advanceTimersByTimeAsync(20_000)
  expect(session.killed).toBe(false)
  controller.abort()
  expect(vi.getTimerCount()).toBe(0)
})

test('one late answer makes up for what was missed before', async () => {
  let answer = () => {}
  const { session } = watched(() => new Promise((resolve) => (answer = resolve)))
  for (let time = 0; time < 10_000; time += 1000) {
    await vi.advanceTimersByTimeAsync(1000)
    answer()
  }
  expect(session.killed).toBe(false)
})
