import { constants } from 'node:os'
import type { ExecExit } from '@tutti/sandbox'
import type { Container } from 'dockerode'
import { statusOf } from './engine-error.ts'

export interface ContainerExit {
  /** False when the engine went away: the container may be running, only nobody here can know. */
  readonly over: boolean
  readonly exit: ExecExit
  readonly outOfMemory: boolean
}

/** How a started container ends. Never rejects. */
export async function exitOf(container: Container): Promise<ContainerExit> {
  try {
    const { StatusCode } = (await container.wait()) as { StatusCode: number }
    const outOfMemory = await container.inspect().then(
      ({ State }) => State.OOMKilled,
      // Removed meanwhile.
      () => false,
    )
    return { over: true, exit: meaningOf(StatusCode), outOfMemory }
  } catch (thrown) {
    return { over: statusOf(thrown) === 404, exit: { code: null }, outOfMemory: false }
  }
}

/** A shell and an engine say 128 and the number of the signal; a program that exits with such a code itself is not told apart. */
function meaningOf(status: number): ExecExit {
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0]
  return signal === undefined ? { code: status } : { code: null, signal }
}
