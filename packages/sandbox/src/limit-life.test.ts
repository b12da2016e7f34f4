import { systemClock } from '@tutti/core'
import { afterEach, expect, test } from 'vitest'
import { limitLife } from './limit-life.ts'
import { createTestSubject, never, type TestSubject } from './test-subject.ts'

let subject: TestSubject
afterEach(() => subject.dispose())

test('says when a sandbox ends, the same however often it is asked for, and ends it then, whatever runs', async () => {
  subject = createTestSubject()
  const limited = limitLife(subject.provider, 1500, systemClock)
  const before = Date.now()
  const spec = subject.spec()
  const sandbox = await limited.create(spec, never)
  expect(sandbox.expiresAt).toBeGreaterThanOrEqual(before + 1500)
  expect((await limited.create(spec, never)).expiresAt).toBe(sandbox.expiresAt)
  expect((await limited.attach(sandbox.ref, never))?.expiresAt).toBe(sandbox.expiresAt)
  const { exit } = await sandbox.exec({ argv: ['/bin/sh', '-c', 'trap "" TERM; sleep 60'] }, never)
  await exit
  expect(Date.now()).toBeGreaterThanOrEqual(sandbox.expiresAt!)
  await expect.poll(() => limited.list(undefined, never), { timeout: 10_000 }).toEqual([])
  // One of the same name afterwards has a life of its own.
  const next = await limited.create(spec, never)
  expect(next.expiresAt).toBeGreaterThan(sandbox.expiresAt!)
  await limited.destroy(next.ref, never)
})

test('has one end for each sandbox, however often its provider makes an object of it, and tries it until it succeeds', async () => {
  subject = createTestSubject()
  const real = subject.provider
  let refusals = 0
  const limited = limitLife(
    {
      ...real,
      async attach(ref, signal) {
        const sandbox = await real.attach(ref, signal)
        return sandbox && { ...sandbox }
      },
      async destroy(ref, signal) {
        if (refusals > 0) return real.destroy(ref, signal)
        refusals += 1
        throw new Error('not now')
      },
    },
    1500,
    systemClock,
  )
  const sandbox = await limited.create(subject.spec(), never)
  expect((await limited.attach(sandbox.ref, never))?.expiresAt).toBe(sandbox.expiresAt)
  await expect.poll(() => limited.list(undefined, never), { timeout: 10_000 }).toEqual([])
  expect(refusals).toBe(1)
})
