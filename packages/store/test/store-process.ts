import { join } from 'node:path'
import { TuttiError, parseCrashOrder } from '@tutti/core'
import { createCrashPoints, createSqliteStore } from '../src/index.ts'

/** A process that holds a store and does what its parent asks over IPC: run by the tests that kill it. */
const folder = process.argv[2] ?? ''
const order = parseCrashOrder(process.env['TUTTI_CRASH_AT'] ?? '')
const never = new AbortController().signal
const { eventLog, catalog } = await createSqliteStore({
  path: join(folder, 'tutti.db'),
  wakeDir: folder,
  ...(order && { crashPoint: createCrashPoints({ order, stampDir: folder }) }),
})

const calls = {
  append: (log, producer, records) => eventLog.append(log, producer, records, never),
  acquire: (request) => catalog.leases.acquire(request, never),
  release: (host, holder) => catalog.leases.release(host, holder, never),
} satisfies StoreCalls

/** What the process can be asked. */
export interface StoreCalls {
  append(...args: DropSignal<Parameters<typeof eventLog.append>>): ReturnType<typeof eventLog.append>
  acquire(
    ...args: DropSignal<Parameters<typeof catalog.leases.acquire>>
  ): ReturnType<typeof catalog.leases.acquire>
  release(
    ...args: DropSignal<Parameters<typeof catalog.leases.release>>
  ): ReturnType<typeof catalog.leases.release>
}
type DropSignal<Args extends unknown[]> = Args extends [...infer Rest, AbortSignal] ? Rest : never

process.on('message', (message: { id: number; call: keyof StoreCalls; args: never }) => {
  const { id, call, args } = message
  const answer = (calls[call] as (...all: never[]) => Promise<unknown>)(...(args as never[]))
  answer.then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: TuttiError.from(error).code }),
  )
})
process.on('disconnect', () => process.exit())
process.send?.({ ready: true })
