import { TuttiError } from '@tutti/core'
import { decodeRunEvent } from '@tutti/protocol'
import { afterEach, expect, test } from 'vitest'
import { createTestHost, type TestHost } from './test-host.ts'

const never = new AbortController().signal

let host: TestHost | undefined
afterEach(async () => host?.remove())

test('a sandbox of which the log cannot be told is ended', { timeout: 60_000 }, async () => {
  let refuses = true
  host = await createTestHost({
    files: { x: 'x' },
    eventLog: (real) => ({
      ...real,
      async append(...args) {
        const isReady = args[2]
          .map(decodeRunEvent)
          .some((event) => event.type === 'sandbox' && event.state === 'ready')
        if (refuses && isReady) throw new TuttiError('internal', 'The log is broken.')
        return real.append(...args)
      },
    }),
  })
  const { deps, provision, events } = host
  await expect(provision(1)).rejects.toThrow('The log is broken.')
  expect(await deps.sandboxes.list(undefined, never)).toEqual([])
  refuses = false
  // The same step again, as a worker does it.
  const session = await provision(1)
  expect((await events('sandbox')).at(-1)).toMatchObject({ state: 'ready', incarnation: 1 })
  expect(await deps.sandboxes.list(undefined, never)).toEqual([session.sandbox.ref])
})
