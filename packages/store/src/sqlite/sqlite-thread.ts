import { Worker } from 'node:worker_threads'
import { TuttiError } from '@tutti/core'
import type { Answer, FromThread, Request, RequestKind, Requests, ThreadData, ToThread } from './messages.ts'
import { fromThreadError } from './sqlite-errors.ts'

/** The other end of the SQLite thread. */
export interface SqliteThread {
  call<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Requests[K]['answer']>
  /** Switches reports of other processes' commits on or off. */
  watch(on: boolean): void
  /** Answers what was asked before, closes the file and ends the thread. Idempotent. */
  stop(): Promise<void>
}

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Starts the thread and opens the file.
 * @throws TuttiError as `openDatabase` does.
 */
export async function startSqliteThread(
  data: ThreadData,
  onForeignCommit: () => void,
): Promise<SqliteThread> {
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { workerData: data })
  const pending = new Map<number, Pending>()
  const opened = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<void>()
  let failure: TuttiError | undefined
  let queue: Request[] = []
  let sharedReads = new Map<string, Promise<unknown>>()
  let lastId = 0

  const send = (message: ToThread) => worker.postMessage(message)

  function settle(answer: Answer): void {
    const call = pending.get(answer.id)
    pending.delete(answer.id)
    if ('error' in answer) call?.reject(fromThreadError(answer.error))
    else call?.resolve(answer.value)
    // A store that nobody waits for must not keep the process alive.
    if (pending.size === 0) worker.unref()
  }

  function fail(error: TuttiError): void {
    failure ??= error
    opened.reject(failure)
    for (const { reject } of pending.values()) reject(failure)
    pending.clear()
  }

  worker.on('message', (message: FromThread) => {
    if (message.type === 'answers') message.answers.forEach(settle)
    if (message.type === 'changed') onForeignCommit()
    if (message.type === 'ready') opened.resolve()
    if (message.type === 'refused') fail(fromThreadError(message.error))
  })
  worker.on('error', (error) =>
    fail(new TuttiError('unavailable', 'The store has failed; restart Tutti.', {}, error)),
  )
  worker.on('exit', () => {
    fail(new TuttiError('unavailable', 'The store is closed.'))
    exited.resolve()
  })

  function flush(): void {
    const requests = queue
    queue = []
    sharedReads = new Map()
    if (!failure) send({ type: 'requests', requests })
  }

  function enqueue(kind: RequestKind, ask: unknown): Promise<unknown> {
    if (failure) return Promise.reject(failure)
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const id = (lastId += 1)
    if (pending.size === 0) worker.ref()
    pending.set(id, { resolve, reject })
    if (queue.length === 0) queueMicrotask(flush)
    queue.push({ id, kind, ask })
    return promise
  }

  function call(kind: RequestKind, ask: unknown): Promise<unknown> {
    if (kind !== 'read') return enqueue(kind, ask)
    // Readers that are woken together ask the same; only questions that have not left yet are shared, so that nobody gets an
    // answer from before they asked.
    const key = JSON.stringify(ask)
    const shared = sharedReads.get(key) ?? enqueue(kind, ask)
    sharedReads.set(key, shared)
    return shared
  }

  await opened.promise
  worker.unref()
  return {
    call: (kind, ask) => call(kind, ask) as Promise<never>,
    watch: (on) => {
      if (!failure) send({ type: 'watch', on })
    },
    stop: async () => {
      if (failure) return exited.promise
      worker.ref()
      if (queue.length > 0) flush()
      send({ type: 'stop' })
      await exited.promise
    },
  }
}
