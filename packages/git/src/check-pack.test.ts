import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { OpenPack } from './check-pack.ts'
import type { Mirror } from './port.ts'
import { createFixture, never, userGit, type Fixture } from './test-fixture.ts'

let fixture: Fixture
let mirror: Mirror
beforeEach(async () => {
  fixture = await createFixture()
  write('.gitattributes', '*.txt text\n')
  write('.gitmodules', '[submodule "a"]\n\tpath = a\n\turl = ../a\n')
  fixture.commitAll()
  mirror = await fixture.mirrors.open(fixture.source, never)
})
afterEach(() => fixture.remove())

const write = (name: string, content: string) => writeFileSync(join(fixture.source, name), content)
/** What an agent's commit has beyond `base`. */
function packSince(base: string): OpenPack {
  const input = `${fixture.commitAll()}\n^${base}\n`
  const pack = execFileSync('git', ['pack-objects', '--revs', '--stdout', '-q'], {
    cwd: fixture.source,
    input,
  })
  return async function* () {
    yield pack
  }
}
const head = () => userGit(fixture.source, 'rev-parse', 'HEAD')

test('a tree that names attributes and submodules of the source is no unsafe object', async () => {
  const base = head()
  write('x', 'x\n')
  await expect(mirror.checkPack(packSince(base), [], never)).resolves.toBeUndefined()
})

test('attributes that came with an earlier pack are looked at there', async () => {
  const base = head()
  write('.gitattributes', '*.txt -text\n')
  const first = packSince(base)
  await mirror.checkPack(first, [], never)
  const second = head()
  write('x', 'x\n')
  const next = packSince(second)
  await mirror.checkPack(next, [first], never)
  await expect(mirror.checkPack(next, [], never)).rejects.toThrow(/gitattributesMissing/)
})

test('submodules that are unsafe are found also when they came under another name before', async () => {
  const base = head()
  write('harmless', '[submodule "a"]\n\tpath = a\n\turl = -u./payload\n')
  const first = packSince(base)
  await mirror.checkPack(first, [], never)
  const second = head()
  userGit(fixture.source, 'mv', '-f', 'harmless', '.gitmodules')
  await expect(mirror.checkPack(packSince(second), [first], never)).rejects.toThrow(/gitmodulesUrl/)
})
