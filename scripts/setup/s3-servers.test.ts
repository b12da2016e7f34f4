import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ensureS3Servers } from './ensure-s3-servers.mjs'
import { findS3Servers } from './s3-servers.mjs'

const never = new AbortController().signal
let folder: string
let said: string[]
let env: NodeJS.ProcessEnv

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti s3 servers '))
  said = []
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0)
  await mkdir(join(folder, 'bin'))
  env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin`, XDG_CACHE_HOME: join(folder, 'cache') }
})

afterEach(async () => {
  vi.restoreAllMocks()
  await rm(folder, { recursive: true, force: true })
})

test('both are installed once, each complete in a folder of its own', async () => {
  await program(
    'python3',
    'while [ "$1" != --target ]; do [ $# -gt 0 ] || exit 0; shift; done; mkdir "$2/ministack"',
  )
  await program('go', '[ "$1" = version ] || echo "$3" > "$GOBIN/versitygw"')
  expect(findS3Servers(env)).toEqual({
    paths: { ministack: null, versitygw: null },
    missing: expect.stringMatching(/ministack 1\.5\.33.*python3 with pip.*versitygw 1\.8\.0.*Go 1\.25/),
  })
  await ensureS3Servers({ signal: never, env })
  expect(said.join('')).toMatch(/Installing ministack 1\.5\.33[\s\S]*Installing versitygw 1\.8\.0/)
  const { paths, missing } = findS3Servers(env)
  expect(missing).toBe('')
  expect(paths.ministack).toMatch(/cache\/tutti\/s3\/ministack-1\.5\.33-.*\/ministack$/)
  expect(paths.versitygw).toMatch(/cache\/tutti\/s3\/versitygw-1\.8\.0-.*\/versitygw$/)
  expect(await readdir(join(folder, 'cache', 'tutti', 's3'))).toHaveLength(2)

  said = []
  await program('python3', 'exit 1')
  await program('go', 'exit 1')
  await ensureS3Servers({ signal: never, env })
  expect(said).toEqual([])
})

test('what is lacking is said, with the way to get it, and the other one is installed', async () => {
  await program('python3', 'exit 1')
  await program('go', '[ "$1" = version ] || touch "$GOBIN/versitygw"')
  await ensureS3Servers({ signal: never, env })
  expect(said.join('')).toContain(
    'ministack 1.5.33, an S3 server for tests, cannot be installed. It needs python3 with pip',
  )
  expect(findS3Servers(env)).toMatchObject({ paths: { ministack: null, versitygw: expect.any(String) } })
})

test('an install that fails says why and leaves nothing', async () => {
  await program('python3', '[ "$3" = --version ] || { echo "no matching distribution"; exit 1; }')
  await program('go', '[ "$1" = version ] || { touch "$GOBIN/half"; exit 1; }')
  await ensureS3Servers({ signal: never, env })
  expect(said.join('')).toContain('no matching distribution')
  expect(said.join('')).toContain('versitygw 1.8.0 could not be installed')
  expect(await readdir(join(folder, 'cache', 'tutti', 's3'))).toEqual([])
})

async function program(name: string, script: string): Promise<void> {
  const path = join(folder, 'bin', name)
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}
