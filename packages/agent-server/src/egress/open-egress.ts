import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAbandoned, passingName } from '@tutti/processes'
import { createEgressProxy, type EgressProxyOptions } from './egress-proxy.ts'

/** A running egress proxy in a folder of its own. */
export interface Egress {
  /** For `agentServerMounts`. */
  readonly folder: string
  /** Ends the proxy and removes the folder. Idempotent. */
  close(): Promise<void>
}

const kind = 'tutti-egress'

/** Starts an egress proxy for one sandbox. The folder is made where paths are short: a socket's path has at most 107 bytes. */
export async function openEgress(options: Omit<EgressProxyOptions, 'socketPath'>): Promise<Egress> {
  const outer = await mkdtemp(join(tmpdir(), `${passingName(kind)}-`))
  const remove = () => rm(outer, { recursive: true, force: true })
  try {
    // In a container the agent may be another user than we are. Nobody on the host gets here: the folder around it is ours alone.
    const folder = join(outer, 'x')
    const socketPath = join(folder, 'egress.sock')
    await mkdir(folder)
    await chmod(folder, 0o755)
    const proxy = await createEgressProxy({ ...options, socketPath })
    await chmod(socketPath, 0o666)
    let closing: Promise<void> | undefined
    return { folder, close: () => (closing ??= proxy.close().then(remove)) }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Removes the folders of processes that died with a proxy open. For the reaper. */
export async function removeAbandonedEgress(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => isAbandoned(kind, name))
  await Promise.all(names.map((name) => rm(join(tmpdir(), name), { recursive: true, force: true })))
}
