import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * Rewrites classes of a Kafka jar into a folder: member ids end with what the sequence says instead of a random UUID, and with a third
 * argument (0.9, whose classes ask the system for the time) the clock is the virtual one.
 */
public class Patch {
  public static void main(String[] args) throws Exception {
    boolean patchesClock = args.length > 2;
    try (JarFile jar = new JarFile(args[0])) {
      for (JarEntry entry : Collections.list(jar.entries())) {
        boolean isGroup = entry.getName().startsWith("kafka/coordinator/");
        boolean isWanted = entry.getName().startsWith("kafka/") && entry.getName().endsWith(".class") && (isGroup || patchesClock);
        if (isWanted) patch(jar.getInputStream(entry).readAllBytes(), isGroup, patchesClock, Paths.get(args[1], entry.getName()));
      }
    }
  }

  /** Writes the class to `target` if a call in it has been replaced. */
  static void patch(byte[] bytes, boolean isGroup, boolean patchesClock, Path target) throws Exception {
    boolean[] hasChanged = {false};
    ClassWriter writer = new ClassWriter(0);
    new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9, writer) {
      @Override
      public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
        return new Calls(super.visitMethod(access, name, type, signature, exceptions), isGroup, patchesClock, hasChanged);
      }
    }, 0);
    if (!hasChanged[0]) return;
    Files.createDirectories(target.getParent());
    Files.write(target, writer.toByteArray());
  }

  /** Replaces System.currentTimeMillis, and UUID.randomUUID().toString() by one call. */
  static class Calls extends MethodVisitor {
    final boolean isGroup;
    final boolean patchesClock;
    final boolean[] hasChanged;

    Calls(MethodVisitor next, boolean isGroup, boolean patchesClock, boolean[] hasChanged) {
      super(Opcodes.ASM9, next);
      this.isGroup = isGroup;
      this.patchesClock = patchesClock;
      this.hasChanged = hasChanged;
    }

    @Override
    public void visitMethodInsn(int code, String owner, String name, String type, boolean isInterface) {
      if (patchesClock && owner.equals("java/lang/System") && name.equals("currentTimeMillis")) {
        replace("now", "()J");
      } else if (isGroup && owner.equals("java/util/UUID") && name.equals("randomUUID")) {
        replace("uuid", "()Ljava/lang/String;");
      } else if (!(isGroup && owner.equals("java/util/UUID") && name.equals("toString"))) {
        super.visitMethodInsn(code, owner, name, type, isInterface);
      }
    }

    void replace(String method, String type) {
      hasChanged[0] = true;
      super.visitMethodInsn(Opcodes.INVOKESTATIC, "VirtualClock", method, type, false);
    }
  }
}
