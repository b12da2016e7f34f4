import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEgressProxy, type EgressProxyOptions } from './egress-proxy.ts'

/** A running egress proxy in a folder of its own. */
export interface Egress {
  /** For `agentServerMounts`. */
  readonly folder: string
  /** Ends the proxy and removes the folder. Idempotent. */
  close(): Promise<void>
}

/** Starts an egress proxy for one sandbox. The folder is made where paths are short: a socket's path has at most 107 bytes. */
export async function openEgress(options: Omit<EgressProxyOptions, 'socketPath'>): Promise<Egress> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-egress-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const proxy = await createEgressProxy({ ...options, socketPath: join(folder, 'egress.sock') })
    let closing: Promise<void> | undefined
    return { folder, close: () => (closing ??= proxy.close().then(remove)) }
  } catch (error) {
    await remove()
    throw error
  }
}
