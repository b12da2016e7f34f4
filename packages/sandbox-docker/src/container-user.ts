import type { Engine } from './engine.ts'

/** Who the programs of a sandbox are. */
export interface ContainerUser {
  readonly uid: number
  readonly gid: number
  /** For the engine. */
  readonly usernsMode: string
  /** Files on the host are not ours then: they are given away after they were made. */
  readonly foreign: boolean
}

/**
 * A user inside whose files on the host this process can read and remove. Never root of the host: where the worker is root it is
 * 1000, else it is the worker's own user.
 */
export function containerUser(
  engine: Pick<Engine, 'kind' | 'rootless'>,
  worker: { readonly uid: number; readonly gid: number } = {
    uid: process.getuid?.() ?? 1000,
    gid: process.getgid?.() ?? 1000,
  },
): ContainerUser {
  // With the host's user ids, also where the engine maps them by default.
  if (!engine.rootless) {
    return worker.uid === 0
      ? { uid: 1000, gid: 1000, usernsMode: 'host', foreign: true }
      : { ...worker, usernsMode: 'host', foreign: false }
  }
  if (engine.kind === 'podman') return { ...worker, usernsMode: 'keep-id', foreign: false }
  // A rootless Docker maps its user to root inside and nothing else to it. Without capabilities that root can do no more than the user.
  return { uid: 0, gid: 0, usernsMode: '', foreign: false }
}
