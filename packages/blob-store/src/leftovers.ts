import { randomUUID } from 'node:crypto'
import { readdir, stat, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { isAbandoned, passingName } from '@tutti/processes'

const maxAgeMs = 24 * 60 * 60 * 1000
const kind = 'blob'

/** Host names may hold anything; the parts of a temporary name are told apart by dots. */
const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, '_')

/** A name for an unfinished blob that tells who is writing it. */
export const temporaryName = (): string => `${host}.${passingName(kind)}.${randomUUID()}`

/** Removes what killed puts left: files of dead processes of this host, and any that are older than a day. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const [madeOn, maker = ''] = name.split('.')
    const dead = madeOn === host && isAbandoned(kind, maker)
    const file = await stat(path).catch(() => undefined)
    if (file?.isFile() && (dead || Date.now() - file.mtimeMs > maxAgeMs)) await unlink(path).catch(() => {})
  }
}
