import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, copyFile, link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createInflate } from 'node:zlib'
import { throwIfCancelled } from '@tutti/core'
import { checkFolder } from './check-pack.ts'
import { letIn } from './let-in.ts'
import type { GitRunner } from './run-git.ts'

const timeoutMs = 30 * 60_000

/**
 * Moves objects and packs that are damaged out of a store. git takes an object that is there by its name for whole, and would not write
 * it again. What is whole in a damaged pack stays: other agents' commits need it. Reads all of the store. Call it with the lock held.
 */
export async function setAsideDamaged(git: GitRunner, gitDir: string, signal: AbortSignal): Promise<void> {
  const objects = join(gitDir, 'objects')
  const aside = join(gitDir, 'damaged')
  const move = async (folder: string, names: readonly string[]) => {
    await mkdir(aside, { recursive: true })
    for (const name of names) await rename(join(folder, name), join(aside, name))
  }

  const packs = join(objects, 'pack')
  const names = await readdir(packs)
  for (const index of names.filter((name) => name.endsWith('.idx'))) {
    const checked = await git.run(['verify-pack', '--', join(packs, index)], { gitDir, signal, timeoutMs })
    throwIfCancelled(signal)
    if (checked.exitCode === 0) continue
    const stem = index.slice(0, -'.idx'.length)
    const damaged = names.filter((name) => name.startsWith(`${stem}.`))
    const kept = await keepWhole(git, gitDir, stem, signal)
    await move(
      packs,
      damaged.filter((name) => !kept.includes(name)),
    )
  }
  const folders = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name))
  for (const start of folders) {
    const folder = join(objects, start)
    for (const rest of await readdir(folder)) {
      throwIfCancelled(signal)
      if (/^[0-9a-f]+$/.test(rest) && !(await isObject(join(folder, rest), start + rest)))
        await move(folder, [rest])
    }
  }
}

/**
 * Packs the whole objects of a damaged pack anew. `git unpack-objects -r` would lose whatever lies behind the first damage: it does not know
 * where the next object begins. The index does, and `git fsck` goes by it.
 *
 * @param stem name of the pack, without its ending
 * @returns the files that are in the store for it
 */
async function keepWhole(
  git: GitRunner,
  gitDir: string,
  stem: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const options = { gitDir, signal, timeoutMs }
  const pack = join(gitDir, 'objects', 'pack', `${stem}.pack`)
  const index = join(gitDir, 'objects', 'pack', `${stem}.idx`)
  const folder = checkFolder(gitDir)
  const [looked, whole] = [join(folder, 'looked'), join(folder, 'whole')]
  try {
    for (const path of [looked, whole]) await mkdir(join(path, 'pack'), { recursive: true })
    const copy = join(looked, 'pack', `${stem}.pack`)
    await copyFile(pack, copy)
    const indexed = await git.run(['index-pack', '--stdin', '--threads=1'], {
      ...options,
      env: { GIT_OBJECT_DIRECTORY: whole },
      input: bytesOf(copy),
    })
    // Its index alone was damaged.
    if (indexed.exitCode === 0) return await letIn(whole, gitDir)

    const listed = await git.run(['show-index'], { ...options, input: bytesOf(index) })
    const ids = [...listed.stdout.toString('latin1').matchAll(/^\d+ ([0-9a-f]+)/gm)].map(([, id]) => id!)
    const [first] = ids
    if (first === undefined) return []
    await link(index, join(looked, 'pack', `${stem}.idx`))
    await mendEnds(copy, index, { objects: ids.length, hashBytes: first.length / 2 })
    const alone = { ...options, env: { GIT_OBJECT_DIRECTORY: looked } }
    // With an object to begin at it leaves the mirror's refs alone.
    const { stderr } = await git.run(['fsck', '--full', '--no-dangling', first], alone)
    const found = stderr.matchAll(/^error: (?:cannot unpack|packed) ([0-9a-f]+) from /gm)
    const bad = new Set([...found].map(([, id]) => id))
    const good = ids.filter((id) => !bad.has(id))
    const packed = await git.run(
      ['pack-objects', '--quiet', '--threads=1', '--window-memory=32m', join(whole, 'pack', 'pack')],
      { ...alone, input: Buffer.from(good.map((id) => `${id}\n`).join('')) },
    )
    // As where the index is damaged too.
    return packed.exitCode === 0 ? await letIn(whole, gitDir) : []
  } catch (thrown) {
    // What the disk gives no more cannot be parted, nor what is gone and has left its index.
    if (['EIO', 'ENOENT'].includes((thrown as NodeJS.ErrnoException).code ?? '')) return []
    throw thrown
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** git does not open a pack whose first or last bytes are not what its index says. */
async function mendEnds(
  pack: string,
  index: string,
  { objects, hashBytes }: { readonly objects: number; readonly hashBytes: number },
): Promise<void> {
  const sums = (await readFile(index)).subarray(-2 * hashBytes)
  await chmod(pack, 0o600)
  const file = await open(pack, 'r+')
  try {
    const header = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1')
    header.writeUInt32BE(objects, 8)
    await file.write(header, 0, header.length, 0)
    const { size } = await file.stat()
    await file.write(sums, 0, hashBytes, Math.max(header.length, size - hashBytes))
  } finally {
    await file.close()
  }
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  for await (const chunk of createReadStream(path)) yield chunk as Buffer
}

/** An object by itself is compressed, and its name is the hash of the rest. */
async function isObject(path: string, id: string): Promise<boolean> {
  const hash = createHash(id.length === 64 ? 'sha256' : 'sha1')
  try {
    await pipeline(createReadStream(path), createInflate(), hash)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    // Not what zlib has written, or what the disk gives no more.
    if (code.startsWith('Z_') || code === 'EIO') return false
    throw error
  }
  return hash.digest('hex') === id
}
