import { createTuttiClient, readEndpoint, type TuttiClient } from '@tutti/client'
import { TuttiError, type Clock } from '@tutti/core'
import type { LoadedConfig } from '../config/load-config.ts'
import type { StackParts } from './parts.ts'
import { startStack, type Stack } from './start-stack.ts'

export interface OpenSession {
  readonly config: LoadedConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly loadParts: () => Promise<StackParts>
  readonly clock: Clock
  readonly log: (line: string) => void
  /** Ends the start in order. */
  readonly signal: AbortSignal
  /** Ends our own stack at once, also while it starts. */
  readonly killed: AbortSignal
}

/** A server to work with: the one that is up, else one of our own in this process. */
export interface ServerSession {
  /**
   * The server's client. When the server that was used has gone (another `tutti run` that held the stack has ended), the
   * one that is up now, or a new stack of our own on the same data: nothing that was started is lost.
   */
  client(): Promise<TuttiClient>
  /** Our own stack, if we started one. */
  stack(): Stack | undefined
  /** Rejects when our own stack failed for good. */
  readonly failed: Promise<never>
  close(): Promise<void>
}

const waitMs = 30_000

/** @throws TuttiError what starting a stack throws; `unavailable` when a stack is there but does not answer in time. */
export async function openSession(options: OpenSession): Promise<ServerSession> {
  const { config, clock, signal, log } = options
  const dataDir = String(config.values['data.dir'])
  const address = String(config.values['server.address'])
  const { promise: failed, reject } = Promise.withResolvers<never>()
  failed.catch(() => {})
  let own: Stack | undefined
  let known: TuttiClient | undefined
  let opening: Promise<TuttiClient> | undefined

  const open = async (): Promise<TuttiClient> => {
    if (address !== '')
      return (known ??= createTuttiClient({ address, key: options.env['TUTTI_API_KEY'] ?? '' }))
    if (own?.api && known) return known
    const deadline = clock.monotonic() + waitMs
    for (;;) {
      const endpoint = await readEndpoint(dataDir)
      if (endpoint) {
        if (known?.address !== endpoint.address) known = createTuttiClient(endpoint)
        return known
      }
      const started = await startStack({
        kind: 'dev',
        onStart: () => log('Starting Temporal, the worker and the API in this process.'),
        logTo: 'file',
        parts: await options.loadParts(),
        config,
        env: options.env,
        log,
        signal,
        killed: options.killed,
      })
      if (!('holder' in started)) {
        own = started
        started.failed.catch(reject)
        return (known = createTuttiClient(started.api!))
      }
      const { role, pid } = started.holder
      if (clock.monotonic() > deadline) {
        throw new TuttiError(
          'unavailable',
          role.startsWith('worker')
            ? `A ${role} (pid ${pid}) runs on ${dataDir}, but no api. Start one with "tutti serve api --data-dir ${dataDir}".`
            : `${role} (pid ${pid}) holds ${dataDir} but does not answer.`,
          { role, pid },
        )
      }
      await clock.sleep(100, signal)
    }
  }
  const client = () =>
    (opening ??= open().finally(() => {
      opening = undefined
    }))
  await client()
  return {
    client,
    stack: () => own,
    failed,
    close: async () => own?.stop(),
  }
}
