import { inspectedCalls, missingCalls, refusedCalls } from './seccomp-calls.ts'

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const
type FilteredArch = keyof typeof auditArch

/** From here on x86_64 counts the calls of its x32 ABI. */
const firstX32Call = 0x40000000
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. All others reach past the network namespace (AF_VSOCK) or deep into the kernel. */
export const socketFamilies: readonly number[] = [1, 2, 10, 16]
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
export const namespaceFlags = 0x7e020000

const errno = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const

/** Offsets in the kernel's `struct seccomp_data`. The first argument's low half: the calls in question take an int there, or flags. */
const offsetOf = { call: 0, arch: 4, firstArgument: 16 } as const

/** Codes of classic BPF. */
const load = 0x20
const jumpIfEqual = 0x15
const jumpIfAtLeast = 0x35
const jumpIfAnyBit = 0x45
const answer = 0x06
const allow = 0x7fff0000
const failWith = 0x00050000

type Label = 'refuse' | 'missing' | 'clone' | 'socket' | 'allow'
interface Instruction {
  readonly code: number
  readonly operand: number
  /** Where to go when the comparison holds, or does not; to the next instruction without. */
  readonly whenTrue?: Label
  readonly whenFalse?: Label
  /** Name of this place. */
  readonly at?: Label
}

/**
 * The program that `bwrap --seccomp` reads: which system calls a sandbox may make. Undefined for an architecture whose calls we do not
 * know by number.
 */
export function seccompFilter(arch: string = process.arch): Buffer | undefined {
  return arch === 'x64' || arch === 'arm64' ? assemble(program(arch)) : undefined
}

function program(arch: FilteredArch): Instruction[] {
  const numbers = (calls: typeof refusedCalls) =>
    Object.values(calls).flatMap((call) => (call[arch] === undefined ? [] : [call[arch]]))
  const goIfEqual = (operand: number, whenTrue: Label): Instruction => ({
    code: jumpIfEqual,
    operand,
    whenTrue,
  })
  return [
    { code: load, operand: offsetOf.arch },
    // Calls of 32-bit programs have other numbers, and put the arguments of socket where a filter cannot look.
    { code: jumpIfEqual, operand: auditArch[arch], whenFalse: 'missing' },
    { code: load, operand: offsetOf.call },
    ...(arch === 'x64' ? [{ code: jumpIfAtLeast, operand: firstX32Call, whenTrue: 'missing' } as const] : []),
    ...numbers(missingCalls).map((number) => goIfEqual(number, 'missing')),
    ...numbers(refusedCalls).map((number) => goIfEqual(number, 'refuse')),
    goIfEqual(inspectedCalls.clone[arch], 'clone'),
    goIfEqual(inspectedCalls.socket[arch], 'socket'),
    goIfEqual(inspectedCalls.socketpair[arch], 'socket'),
    { code: answer, operand: allow },
    { at: 'clone', code: load, operand: offsetOf.firstArgument },
    { code: jumpIfAnyBit, operand: namespaceFlags, whenTrue: 'refuse', whenFalse: 'allow' },
    { at: 'socket', code: load, operand: offsetOf.firstArgument },
    ...socketFamilies.map((family) => goIfEqual(family, 'allow')),
    { code: answer, operand: failWith + errno.EAFNOSUPPORT },
    { at: 'refuse', code: answer, operand: failWith + errno.EPERM },
    { at: 'missing', code: answer, operand: failWith + errno.ENOSYS },
    { at: 'allow', code: answer, operand: allow },
  ]
}

/** An array of `struct sock_filter`: code (16 bits), distances of both jumps (8 each), operand (32); all little-endian there. */
function assemble(instructions: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(instructions.length * 8)
  const distance = (from: number, label: Label | undefined) =>
    label === undefined ? 0 : instructions.findIndex(({ at }) => at === label) - from - 1
  instructions.forEach(({ code, operand, whenTrue, whenFalse }, index) => {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(distance(index, whenTrue), index * 8 + 2)
    bytes.writeUInt8(distance(index, whenFalse), index * 8 + 3)
    bytes.writeUInt32LE(operand, index * 8 + 4)
  })
  return bytes
}
