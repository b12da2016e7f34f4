import type { PodmanEngine } from './podman.ts'

/** What an agent's sandbox needs, and what tests run in one. */
const programs = (
  'sh cat chmod cp dd echo env false grep head hostname id ln ls mkdir mount mv ps pwd readlink rm sed seq setsid sha256sum sleep sort ' +
  'stat tail touch tr true unshare wc'
).split(' ')
/** Of the C++ library and beside it: what Node wants. */
const libraries = [
  'libstdc++.so.6',
  'libgcc_s.so.1',
  'libatomic.so.1',
  'libdl.so.2',
  'libm.so.6',
  'libpthread.so.0',
]

/**
 * A shell line that writes an archive of this machine's own programs, with the libraries that they load. No registry is asked, and
 * a second is enough, so that nothing has to be kept.
 */
function hostArchive(names: readonly string[]): string {
  return [
    // Not `command -v`, which answers for what the shell has built in.
    `files=$(for name in ${names.join(' ')}; do ls -d "/usr/bin/$name" "/bin/$name" 2>/dev/null | head -n 1; done)`,
    `loaded=$(ldd $files 2>/dev/null | grep -o '/[^ :]*' | sort -u)`,
    `others=$(for name in ${libraries.join(' ')}; do ldconfig -p | grep -F "$name " | head -n 1 | grep -o '/.*'; done)`,
    // By the names they are asked for, without links: systems differ in where /bin and /lib lead to.
    `tar -C / --dereference --hard-dereference -c $(printf '%s\\n' $files $loaded $others | sort -u | sed 's,^/,,')`,
  ].join('; ')
}

/** Images for tests of container sandboxes: names of images in the engine. */
export const testImages = {
  /** Shell, git, glibc, libstdc++ and libatomic. */
  complete: 'localhost/tutti-test:complete',
  withoutGit: 'localhost/tutti-test:without-git',
  /** A static busybox alone: a shell, and no C library. */
  withoutGlibc: 'localhost/tutti-test:without-glibc',
  /** One file, and nothing that could be run. */
  withoutShell: 'localhost/tutti-test:without-shell',
} as const

export type TestImage = keyof typeof testImages

const busyboxArchive = [
  'mkdir -p "$PWD/busybox/bin"',
  'cp "$(command -v busybox)" busybox/bin/busybox',
  'for name in sh cat env; do ln -sf busybox "busybox/bin/$name"; done',
  'tar -C busybox -c .',
].join(' && ')

const lines: Readonly<Record<TestImage, string>> = {
  complete: hostArchive([...programs, 'git']),
  withoutGit: hostArchive(programs),
  withoutGlibc: busyboxArchive,
  withoutShell: 'tar -C / -c etc/hostname',
}

/** Puts an image for tests into the engine. `changes` are lines of a Dockerfile. @returns its name there. */
export async function importTestImage(
  engine: PodmanEngine,
  image: TestImage,
  changes: readonly string[] = [],
): Promise<string> {
  await engine.importImage(testImages[image], lines[image], changes)
  return testImages[image]
}
