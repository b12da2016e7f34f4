import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { loseSandbox } from './recovery-driver.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('names and links that lead elsewhere', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  const outside = mkdtempSync(join(tmpdir(), 'tutti-outside-'))

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
    writeFileSync(join(outside, 'secret'), 'host-secret-964\n')
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    rmSync(outside, { recursive: true })
  })

  const changed = (events: readonly Logged[]) =>
    events.flatMap((event) =>
      event.type === 'file_change' && event.action !== 'deleted' ? [event.path] : [],
    )
  const listFolder = (folder: string) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()
  /** `tutti agent workspace`, as a user has it on their own disk. */
  const writeTo = async (bcId: string, name: string): Promise<string> => {
    const folder = join(outside, name)
    expect((await stack.run(['agent', 'workspace', bcId, '--to', folder])).code).toBe(0)
    return folder
  }

  test('SEC-01 names that an agent can make and nobody may write: each is told of, and is nowhere afterwards', async () => {
    const deep = `n=$(printf %0200d 0); for i in $(seq 25); do mkdir $n; cd -P $n; done; echo > end`
    const before = listFolder(outside)
    const lost = await loseSandbox(
      stack,
      client,
      repository,
      `mkdir -p .GIT/hooks a/.git git~1 below/.Git; echo 1 > .GIT/hooks/y; echo 2 > a/.git/z; echo 3 > git~1/x; echo 4 > below/.Git/c; echo fine > a/fine; echo own >> .git/description`,
      `ls -A; ls -A a below .git/hooks 2>&1 || true; (${deep})`,
    )
    const events = await lost.agent.events()
    // A folder with nothing but what may not be captured counts as an empty one.
    expect(changed(events)).toEqual(['a/fine', 'below'])
    const skipped = events.flatMap((event) =>
      event.type === 'file_skipped' ? [`${event.path.slice(0, 16)} ${event.reason}`] : [],
    )
    for (const name of ['.GIT', 'git~1', 'below/.Git'])
      expect(skipped).toContainEqual(
        expect.stringMatching(new RegExp(`^${name.replace('.', '\\.')}.* unsafe_name$`)),
      )
    expect(skipped).toContainEqual(expect.stringMatching(/^0{16} (?:unreadable|unsafe_name)$/))
    expect(Object.keys(lost.after).toSorted()).toEqual(['README.md', 'a/fine', 'below/'])
    expect(lost.output).not.toMatch(/\.GIT|\.Git|git~1|^[yz]$/m)
    const folder = await writeTo(lost.agent.bcId, 'names')
    expect(listFolder(folder)).toEqual(['README.md', 'a', 'a/fine', 'below'])
    expect(listFolder(outside)).toEqual(
      [...before, 'names', ...listFolder(folder).map((name) => join('names', name))].toSorted(),
    )
  })

  test('SEC-02 links lead nowhere: not in a capture, a recovery, a patch or a folder of the user', async () => {
    const sources = readdirSync(join(stack.dataDir, 'mirrors')).filter((name) => name.endsWith('.source.git'))
    const lost = await loseSandbox(
      stack,
      client,
      repository,
      [
        `ln -s / out; mkdir -p out/tmp; echo pwned > out/tmp/pwn; ln -s ${outside}/secret stolen; ln -s /etc/passwd real; ln -s /proc/self/root/etc loop`,
        // The source's objects are read-only and on another file system.
        'for file in $(find $(cat .git/objects/info/alternates) -type f | head -n 3); do ln $file hard 2>/dev/null && echo LINKED; (echo x >> $file) 2>/dev/null && echo WRITTEN; chmod u+w $file 2>/dev/null && echo OPENED; done',
        'ls -A $(cat .git/objects/info/alternates) | grep -q . && echo SEEN',
        'mkdir later; echo l > later/f',
      ].join('\n'),
      // The link becomes a folder of the same name, with a file below.
      'rm out; mkdir -p out/tmp; echo own > out/tmp/pwn; rm -r later; ln -s /tmp later',
    )
    expect(lost.said).toBe('SEEN\n')
    expect(lost.after).toEqual(lost.before)
    expect(lost.after).toMatchObject({
      out: 'link /',
      stolen: `link ${outside}/secret`,
      real: 'link /etc/passwd',
    })
    const events = await lost.agent.events()
    const first = events.slice(0, events.length - lost.since.length)
    expect(changed(first).toSorted()).toEqual(['later/f', 'loop', 'out', 'real', 'stolen'])
    expect(events.filter(({ type }) => type === 'file_skipped')).toEqual([])

    const folder = await writeTo(lost.agent.bcId, 'links')
    expect(lstatSync(join(folder, 'out/tmp/pwn')).isFile()).toBe(true)
    expect(readlinkSync(join(folder, 'later'))).toBe('/tmp')
    expect(readlinkSync(join(folder, 'stolen'))).toBe(join(outside, 'secret'))
    const { stdout: patch } = await stack.run(['agent', 'diff', lost.agent.bcId])
    expect(patch).toContain('new file mode 120000')
    expect(patch).not.toMatch(/host-secret-964|root:x/)
    expect(JSON.stringify(events)).not.toContain('host-secret-964')
    expect(existsSync('/tmp/pwn')).toBe(false)
    for (const name of sources)
      execFileSync('git', ['--git-dir', join(stack.dataDir, 'mirrors', name), 'fsck', '--strict'])
    expect(sources.length).toBeGreaterThan(0)
  })
})
