import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAbandoned, passingName } from '@tutti/processes'
import { removeDisk } from './sandbox-disk.ts'

const kind = 'tutti-probe'

/** A folder of sandboxes for whoever only tries what works, so that looking makes no data folder; removed when `work` is done. */
export async function withProbeRoot<T>(work: (root: string) => Promise<T>): Promise<T> {
  const root = await mkdtemp(join(tmpdir(), `${passingName(kind)}-`))
  try {
    return await work(root)
  } finally {
    await removeProbeRoot(root)
  }
}

/** Removes the folders of processes that died while they tried. For the reaper. */
export async function removeAbandonedProbeRoots(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => isAbandoned(kind, name))
  for (const name of names) await removeProbeRoot(join(tmpdir(), name))
}

/** There may be a file system in it that was tried out. */
async function removeProbeRoot(root: string): Promise<void> {
  for (const name of await readdir(root).catch(() => [])) await removeDisk(join(root, name))
  await rm(root, { recursive: true, force: true })
}
