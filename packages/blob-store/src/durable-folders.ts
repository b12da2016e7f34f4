import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Makes folders below a root whose names survive a power loss; remembers which are known to. */
export interface DurableFolders {
  make(path: string): Promise<void>
  /** Makes many in one folder, with one write to the disk for all of their names. */
  makeAll(parent: string, names: readonly string[]): Promise<void>
  /** The names inside are on the disk after this. */
  sync(path: string): Promise<void>
}

export function createDurableFolders(root: string): DurableFolders {
  const durable = new Set<string>([dirname(root)])

  async function make(path: string): Promise<void> {
    if (durable.has(path)) return
    await mkdir(path, { recursive: true, mode: 0o700 })
    // Also when it was there: whoever made it may not have synced its name yet.
    if (path !== root) await make(dirname(path))
    await sync(dirname(path))
    durable.add(path)
  }

  async function sync(path: string): Promise<void> {
    const folder = await open(join(path), 'r')
    await folder.sync().finally(() => folder.close())
  }

  return {
    make,
    sync,
    async makeAll(parent, names) {
      await make(parent)
      const paths = names.map((name) => join(parent, name))
      await Promise.all(paths.map((path) => mkdir(path, { recursive: true, mode: 0o700 })))
      await sync(parent)
      for (const path of paths) durable.add(path)
    },
  }
}
