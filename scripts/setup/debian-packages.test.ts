import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { installDebianPackages, mayInstallPackages } from './debian-packages.mjs'

let folder: string
let said: string[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti apt '))
  said = []
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`)
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0)
})

afterEach(async () => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true, force: true })
})

test('as root on a Debian-like system it reads the lists first when it has to; elsewhere it says the one command', async () => {
  // Knows no package until its lists have been read, as in a fresh container.
  await writeFile(
    join(folder, 'apt-get'),
    `#!/bin/sh\necho "$@" >> '${folder}/calls'\n[ "$1" = update ] && exec touch '${folder}/lists'\n[ -e '${folder}/lists' ] || { echo "E: Unable to locate package" >&2; exit 100; }\n`,
  )
  await chmod(join(folder, 'apt-get'), 0o755)
  const { signal } = new AbortController()
  const installed = await installDebianPackages(['bubblewrap'], 'sandboxes', { signal })
  const calls = await readFile(join(folder, 'calls'), 'utf8').catch(() => '')
  const install = 'install --yes --no-install-recommends bubblewrap\n'
  const expected = mayInstallPackages()
    ? {
        installed: true,
        calls: `${install}update\n${install}`,
        said: 'Installing Debian packages: bubblewrap (sandboxes)',
      }
    : { installed: false, calls: '', said: 'Missing: bubblewrap (sandboxes). To install: ' }
  expect({ installed, calls, said: said.join('') }).toEqual({
    ...expected,
    said: expect.stringContaining(expected.said),
  })
})
