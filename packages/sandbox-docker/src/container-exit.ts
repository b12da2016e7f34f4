import { constants } from 'node:os'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecExit } from '@tutti/sandbox'
import type { Container } from 'dockerode'
import { statusOf } from './engine-error.ts'

export interface ContainerExit {
  /** False when the engine went away: the container may be running, only nobody here can know. */
  readonly over: boolean
  readonly exit: ExecExit
  readonly outOfMemory: boolean
}

const unknown: ContainerExit = { over: false, exit: { code: null }, outOfMemory: false }
const gone: ContainerExit = { ...unknown, over: true }

const pollMs = 20
/** An engine closes the streams a moment before it knows of the end. */
const patienceMs = 10_000

/**
 * How a started container ends. Never rejects.
 *
 * @param streams of the container: the client never hears of it when an engine dies that had begun to answer, but they are closed then.
 */
export async function exitOf(container: Container, streams: Duplex): Promise<ContainerExit> {
  const closed = new Promise<void>((resolve) => {
    streams.once('end', resolve).once('close', resolve)
  })
  const waited = container.wait().catch(() => undefined)
  await Promise.race([closed, waited])
  const limit = performance.now() + patienceMs
  for (;;) {
    try {
      const { State } = await container.inspect({ abortSignal: AbortSignal.timeout(patienceMs) })
      if (!State.Running) return { over: true, exit: meaningOf(State.ExitCode), outOfMemory: State.OOMKilled }
    } catch (thrown) {
      return statusOf(thrown) === 404 ? gone : unknown
    }
    // Without streams it is of no use any more.
    if (performance.now() > limit) {
      await container.kill({ signal: 'SIGKILL' }).catch(() => {})
      return unknown
    }
    await sleep(pollMs)
  }
}

/** A shell and an engine say 128 and the number of the signal; a program that exits with such a code itself is not told apart. */
function meaningOf(status: number): ExecExit {
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0]
  return signal === undefined ? { code: status } : { code: null, signal }
}
