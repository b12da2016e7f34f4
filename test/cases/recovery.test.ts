import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { connect } from './connect.ts'
import { shellOutput, startAgent } from './agent-driver.ts'
import { listAfterLoss, loseSandbox, type Listing } from './recovery-driver.ts'
import { killSandbox } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

const file = (content: string | Uint8Array, mode = '644') =>
  `${mode} ${createHash('sha256').update(content).digest('hex')}`

describe.skipIf(!temporalPath)('what a lost sandbox leaves', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  const repositories: TestRepository[] = []

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
  })
  afterEach(() => {
    for (const repository of repositories.splice(0)) repository.remove()
  })
  afterAll(() => stack.remove())

  const repositoryOf = (files: Readonly<Record<string, string>>, executable: readonly string[] = []) => {
    const repository = createTestRepository(files)
    repositories.push(repository)
    for (const name of executable) chmodSync(join(repository.path, name), 0o755)
    if (executable.length > 0) {
      repository.git('add', '-A')
      const who = ['-c', 'user.name=Test', '-c', 'user.email=test@localhost']
      repository.git(...who, 'commit', '-q', '--amend', '-m', 'start')
    }
    return repository
  }
  const lose = (repository: TestRepository, work: string, afterwards?: string) =>
    loseSandbox(stack, client, repository, work, afterwards)
  const expectBack = ({ before, after }: { before: Listing; after: Listing }, expected: Listing) => {
    expect(before).toEqual(expected)
    expect(after).toEqual(expected)
  }

  test('REC-02 deletes survive the loss of the sandbox', async () => {
    const lost = await lose(
      repositoryOf({ 'keep.txt': 'k', 'old1.txt': '1', 'dir/old2.txt': '2' }),
      'echo t > tmp.txt; rm old1.txt tmp.txt; rm -r dir',
      'git status --porcelain; test ! -e dir',
    )
    expectBack(lost, { 'keep.txt': file('k') })
    expect(lost.output).toBe(' D dir/old2.txt\n D old1.txt\n')
  })

  test('REC-03 renames: swap, moved directory, reused name', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `f${String(index + 1).padStart(2, '0')}`)
    const lost = await lose(
      repositoryOf({
        'a.txt': 'A',
        'b.txt': 'B',
        ...Object.fromEntries(names.map((name) => [`src/${name}`, name])),
      }),
      'mv a.txt t; mv b.txt a.txt; mv t b.txt; mv src lib; mv lib/f01 src',
    )
    expectBack(lost, {
      'a.txt': file('B'),
      'b.txt': file('A'),
      src: file('f01'),
      ...Object.fromEntries(names.slice(1).map((name) => [`lib/${name}`, file(name)])),
    })
  })

  test('REC-04 mode change without content change', async () => {
    const lost = await lose(
      repositoryOf({ 'run.sh': 'run', 'tool.sh': 'tool' }, ['tool.sh']),
      `chmod +x run.sh; chmod -x tool.sh; printf %020d 7 > new.sh; chmod 755 new.sh`,
      'git diff',
    )
    expectBack(lost, {
      'run.sh': file('run', '755'),
      'tool.sh': file('tool'),
      'new.sh': file('7'.padStart(20, '0'), '755'),
    })
    expect(lost.output.split('\n').filter((line) => !line.startsWith('diff --git'))).toEqual([
      'old mode 100644',
      'new mode 100755',
      'old mode 100755',
      'new mode 100644',
      '',
    ])
  })

  test('REC-05 symbolic links of five shapes', async () => {
    const inside = Array.from({ length: 9 }, (_, index) => `data/${index}`)
    const lost = await lose(
      repositoryOf({
        'conf.txt': 'c',
        'data/in.txt': 'in',
        ...Object.fromEntries(inside.map((name) => [name, name])),
      }),
      [
        'mkdir data/own; echo conf > data/conf.txt; rmdir data/own',
        'ln -s data/in.txt l1; ln -s missing l2; ln -s data l3; ln -s ../outside l4; ln -sf data/conf.txt conf.txt',
      ].join('\n'),
      'ls -d ../outside missing 2>/dev/null || echo nothing there',
    )
    expect(lost.output).toBe('nothing there\n')
    expectBack(lost, {
      'conf.txt': 'link data/conf.txt',
      'data/conf.txt': file('conf\n'),
      'data/in.txt': file('in'),
      ...Object.fromEntries(inside.map((name) => [name, file(name)])),
      l1: 'link data/in.txt',
      l2: 'link missing',
      l3: 'link data',
      l4: 'link ../outside',
    })
    const told = (await lost.agent.events()).flatMap((event) =>
      event.type === 'file_change' ? [event.path] : [],
    )
    expect(told.filter((path) => path.startsWith('l3/'))).toEqual([])
  })

  test('REC-06 bytes that tools like to change', async () => {
    const all = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256))
    const lost = await lose(
      repositoryOf({ '.gitattributes': '* text=auto eol=lf\n' }),
      [
        ': > zero.bin',
        'node -e \'require("fs").writeFileSync("all.bin", Buffer.from(Array.from({ length: 4096 }, (_, at) => at % 256)))\'',
        String.raw`printf 'a\r\nb\r\n' > crlf.txt; printf x > nonl.txt; printf '\357\273\277x' > bom.txt; printf '\351' > latin.txt`,
      ].join('\n'),
    )
    expectBack(lost, {
      '.gitattributes': file('* text=auto eol=lf\n'),
      'zero.bin': file(''),
      'all.bin': file(all),
      'crlf.txt': file('a\r\nb\r\n'),
      'nonl.txt': file('x'),
      'bom.txt': file(Buffer.from([0xef, 0xbb, 0xbf, 0x78])),
      'latin.txt': file(Buffer.from([0xe9])),
    })
    expect(lost.since.filter((event) => event.type === 'file_change')).toEqual([])
  })

  test('folders with nothing in them come back, a checkpoint or two later too', async () => {
    const lost = await lose(
      repositoryOf({ 'full/a': 'a', x: 'x' }),
      'mkdir -p one two/three; rm full/a x; mkdir x',
      'rmdir one; echo b > two/three/b',
    )
    expectBack(lost, { 'full/': 'empty', 'one/': 'empty', 'two/three/': 'empty', 'x/': 'empty' })
    const again = await listAfterLoss(stack, lost.agent)
    expect(again).toEqual({ 'full/': 'empty', 'two/three/b': file('b\n'), 'x/': 'empty' })
  })

  test('REC-07 a file becomes a directory and back', async () => {
    const lost = await lose(
      repositoryOf({ x: 'x', 'y/1': '1', 'y/2': '2' }),
      [
        'rm x; mkdir x; echo k > x/k; rm -r y; echo y > y',
        'rm -r x; echo flip > x; sleep 0.1; rm x; mkdir x; echo k2 > x/k2',
      ].join('\n'),
    )
    expectBack(lost, { 'x/k2': file('k2\n'), y: file('y\n') })
    const boots = lost.since.filter((event) => event.type === 'sandbox' && event.state === 'creating')
    expect(boots).toHaveLength(1)
  })

  test('what a checkpoint holds and was changed again is there as it was when the sandbox was lost', async () => {
    const agent = await startAgent(client, {
      prompt: script('run: echo 1 > x; echo 1 > fresh; echo 1 > gone'),
      repository: repositoryOf({ x: 'x', y: 'y' }).path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    await agent.followUp(script('run: echo 2 > x; echo 2 > fresh; rm gone; mkdir gone', 'run: sleep 932'))
    await agent.waitFor(
      (event) => event.type === 'tool_call_started' && JSON.stringify(event).includes('932'),
    )
    await expect.poll(() => stack.sandboxProcesses().join()).toContain('sleep 932')
    killSandbox(stack, 'sleep 932')
    await agent.waitFor(
      (event) => event.type === 'sandbox' && event.state === 'ready' && event.incarnation === 2,
    )
    await client.agents.stopAgent({ bcId: agent.bcId })
    await agent.rest()
    await agent.followUp(script('run: cat x y fresh; ls -d gone/; git status --short'))
    expect((await agent.rest()).state?.reason).toBe('completed')
    expect(shellOutput(await agent.events())).toContain('2\ny2\ngone/\n M x\n?? fresh\n')
  })

  test('REC-14 content of one file is missing from the store', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `f${index}`)
    const agent = await startAgent(client, {
      prompt: script(
        'run: <<EOF',
        ...names.map((name) => `echo "${name} of REC-14" > ${name}`),
        'EOF',
        'run: echo here; sleep 931',
      ),
      repository: repositoryOf({ 'README.md': 'hello' }).path,
      agent: 'embedded:scripted',
    })
    await agent.waitFor(
      (event) => event.type === 'shell_output_delta' && JSON.stringify(event).includes('here'),
    )
    const hash = `sha256_${createHash('sha256').update('f6 of REC-14\n').digest('hex')}`
    const files = readdirSync(join(stack.dataDir, 'blobs'), { recursive: true, encoding: 'utf8' })
    const blob = join(
      stack.dataDir,
      'blobs',
      files.find((name) => name.endsWith(hash.slice('sha256_'.length)))!,
    )
    const kept = join(stack.dataDir, 'kept-blob')
    renameSync(blob, kept)
    killSandbox(stack, 'sleep 931')

    const rest = await agent.rest()
    expect([await agent.state(), rest.state?.reason]).toEqual(['ERROR', 'data_loss'])
    const events = await agent.events()
    const end = events.find((event) => event.type === 'turn_ended')
    expect(end).toMatchObject({ detail: expect.stringContaining(`f6 (${hash})`) as string })
    const since = events.slice(events.findIndex((event) => event.type === 'turn_interrupted'))
    expect(since.filter(({ type }) => ['tool_call_started', 'file_change'].includes(type))).toEqual([])

    renameSync(kept, blob)
    await agent.followUp(script(`run: cat ${names.join(' ')}`))
    expect((await agent.rest()).state?.reason).toBe('completed')
    expect(shellOutput(await agent.events())).toContain(names.map((name) => `${name} of REC-14\n`).join(''))
  })
})
