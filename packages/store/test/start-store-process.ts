import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { StoreCalls } from './store-process.ts'

export interface StoreProcess {
  readonly child: ChildProcess
  /** Rejects with the error's code, or `gone` when the process ended before it answered. */
  call<K extends keyof StoreCalls>(name: K, ...args: Parameters<StoreCalls[K]>): ReturnType<StoreCalls[K]>
  kill(): Promise<void>
  readonly exited: Promise<string>
}

const program = fileURLToPath(new URL('./store-process.ts', import.meta.url))

/** Starts a process that holds the store in `folder`; `fileLimit` bounds the size of its files, in blocks of `ulimit -f`. */
export async function startStoreProcess(
  folder: string,
  { crashAt = '', fileLimit = 'unlimited' }: { crashAt?: string; fileLimit?: string } = {},
): Promise<StoreProcess> {
  const child = spawn(
    'sh',
    ['-c', `ulimit -f ${fileLimit}; exec "$@"`, 'sh', process.execPath, program, folder],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, TUTTI_CRASH_AT: crashAt } },
  )
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  const ready = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<string>()
  let lastId = 0
  let gone = false
  child.on('message', (message: { id: number; value?: unknown; error?: string; ready?: boolean }) => {
    if (message.ready) return ready.resolve()
    const call = pending.get(message.id)
    pending.delete(message.id)
    if (message.error === undefined) call?.resolve(message.value)
    else call?.reject(new Error(message.error))
  })
  // 'disconnect' comes after the last message: an answer that was sent before the death still counts.
  child.once('exit', (_code, signal) => exited.resolve(signal ?? 'exit'))
  child.once('disconnect', () => {
    gone = true
    ready.reject(new Error('gone'))
    for (const { reject } of pending.values()) reject(new Error('gone'))
  })
  await ready.promise
  return {
    child,
    exited: exited.promise,
    call: (name, ...args) => {
      if (gone) return Promise.reject(new Error('gone')) as never
      const id = (lastId += 1)
      const answer = Promise.withResolvers<unknown>()
      pending.set(id, answer)
      child.send({ id, call: name, args }, (error) => error && answer.reject(new Error('gone')))
      return answer.promise as never
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited.promise
    },
  }
}
