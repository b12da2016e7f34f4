import { execFileSync } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { passingName } from '@tutti/processes'
import { diskFolderKind } from './disk-folder.ts'

/** What takes longer is left to the next start: whoever asked for an end at once does not wait. */
const patienceMs = 3000

/** Kills and removes containers over the engine's socket. Arguments: the socket, names. Plain Node, for the client loads slowly. */
const script = `
const [socketPath, ...names] = process.argv.slice(1)
const call = (method, path) => new Promise((resolve) => {
  const request = require('node:http').request({ socketPath, method, path }, (response) => response.resume().on('end', resolve))
  request.on('error', resolve).end()
})
for (const name of names)
  call('POST', '/containers/' + name + '/kill?signal=SIGKILL').then(() => call('DELETE', '/containers/' + name + '?force=true&v=true'))
`

/** Ends and removes containers of this process and its folders below `root` without giving anybody else a turn, as far as that is possible. */
export function killContainersNow(root: string, socketPath: string, names: readonly string[]): void {
  try {
    const args = ['-e', script, socketPath, ...names]
    if (names.length > 0)
      execFileSync(process.execPath, args, { stdio: 'ignore', timeout: patienceMs, env: {} })
  } catch {
    // The engine does not answer: the containers end as their input does, and the next start removes them.
  }
  for (const name of readdirSync(root)) {
    if (!name.startsWith(`${passingName(diskFolderKind)}-`)) continue
    try {
      execFileSync('umount', ['-l', join(root, name, 'data')], { stdio: 'ignore' })
    } catch {
      // It was not mounted.
    }
    rmSync(join(root, name), { recursive: true, force: true })
  }
}
