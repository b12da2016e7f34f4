import { chown, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { insidePaths, ownEtcFiles, type SandboxDisk } from '@tutti/sandbox/host'
import type { CheckedImage } from './check-image.ts'
import type { ContainerUser } from './container-user.ts'

type ReadOnly = readonly { readonly host: string; readonly inside: string }[]

/** Gives the writable folders of a sandbox to its user. */
export async function giveFolders(disk: SandboxDisk, user: ContainerUser): Promise<void> {
  if (!user.foreign) return
  for (const path of [disk.workspace, disk.home, disk.tmp, disk.shm]) await chown(path, user.uid, user.gid)
}

/**
 * Writes the files below /etc that are the sandbox's own: the user must have a name there, or programs that ask for it fail, and the
 * engine's list of hosts has names of this host's.
 *
 * @returns where to mount them.
 */
export async function makeEtcFiles(
  disk: SandboxDisk,
  image: CheckedImage,
  user: ContainerUser,
  allowNetwork: boolean,
): Promise<ReadOnly> {
  const folder = join(disk.folder, 'etc')
  await mkdir(folder, { mode: 0o755 })
  const files = {
    passwd: `agent:x:${user.uid}:${user.gid}:agent:${insidePaths.home}:/bin/sh\n${othersIn(image.passwd, user.uid)}`,
    group: `agent:x:${user.gid}:\n${othersIn(image.group, user.gid)}`,
    ...(allowNetwork ? {} : { hosts: ownEtcFiles.hosts }),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o644 })
  return Object.keys(files).map((name) => ({ host: join(folder, name), inside: `/etc/${name}` }))
}

/** Lines of a file of users or groups that do not stand for the name or the number of the agent. */
const othersIn = (text: string, id: number): string =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('agent:') && line.split(':')[2] !== String(id))
    .map((line) => `${line}\n`)
    .join('')

/**
 * Refuses what the user inside could not read: it would find an empty mirror, or no agent server.
 *
 * @throws TuttiError `failed_precondition` with the path and the command that opens it.
 */
export async function checkReadable(readOnly: ReadOnly, user: ContainerUser): Promise<void> {
  if (!user.foreign) return
  for (const { host } of readOnly) {
    const stats = await stat(host)
    const needed = stats.isDirectory() ? 0o005 : 0o004
    if ((stats.mode & needed) === needed) continue
    throw new TuttiError(
      'failed_precondition',
      `The user ${user.uid} of the sandbox cannot read ${host}, which is mounted into it: chmod o+rX ${host}, or run the worker as another user than root.`,
      { path: host },
    )
  }
}
