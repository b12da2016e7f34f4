/**
 * Whether any file system could take this name for `.gitmodules`: case folded, with trailing dots and blanks or a stream, and as one of the short
 * names of Windows. git checks out no commit in which such a path is a link (CVE-2018-11235).
 */
export const isModulesName = (name: Uint8Array): boolean =>
  /^(?:\.gitmodules|gitmod~[1-4]|(?=.{8}(?:$|[.: ]))g?i?7?e?b?a?~[1-9]\d*)[. ]*(?::|$)/i.test(
    Buffer.from(name).toString('latin1'),
  )
